"""What the server counts, in Prometheus' text format."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

LATENCY_BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)


class Metrics:
    """The counters of one server process, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "evercore_http_requests", "Requests answered.", ("method", "route", "status"), registry=self.registry
        )
        self._seconds = Histogram(
            "evercore_http_request_seconds",
            "Time to answer a request.",
            ("method", "route"),
            buckets=LATENCY_BUCKETS,
            registry=self.registry,
        )
        self._arms = Histogram(
            "evercore_search_seconds",
            "Time of the parts of a search.",
            ("part",),
            buckets=LATENCY_BUCKETS,
            registry=self.registry,
        )
        self._degraded = Counter(
            "evercore_search_degraded", "Searches that had to do without a part.", ("part",), registry=self.registry
        )
        self._messages = Counter(
            "evercore_messages_added", "Messages that were stored.", ("tenant",), registry=self.registry
        )
        self._flushes = Counter("evercore_flushes", "Flushes by outcome.", ("status",), registry=self.registry)
        self._background = Counter(
            "evercore_background_rounds", "Rounds of background upkeep.", ("outcome",), registry=self.registry
        )
        self._pending = Gauge(
            "evercore_pending_messages",
            "Messages that are in no finished MemCell.",
            ("tenant",),
            registry=self.registry,
        )
        self._unindexed = Gauge(
            "evercore_unindexed_rows", "Rows that some index lacks.", ("tenant",), registry=self.registry
        )
        self._rows = Gauge("evercore_rows", "Visible rows.", ("tenant", "memory_type"), registry=self.registry)

    def request(self, *, route: str, method: str, status: int, seconds: float) -> None:
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def search(self, *, timings_ms: dict[str, float], degraded: dict[str, str]) -> None:
        for part, milliseconds in timings_ms.items():
            self._arms.labels(part).observe(milliseconds / 1000)
        for part in degraded:
            self._degraded.labels(part).inc()

    def added(self, tenant: str, messages: int) -> None:
        self._messages.labels(tenant).inc(messages)

    def flushed(self, status: str) -> None:
        self._flushes.labels(status).inc()

    def background(self, outcome: str) -> None:
        self._background.labels(outcome).inc()

    def backlog(self, tenant: str, counts: dict[str, int]) -> None:
        """Rows by type and what is still to be done, from the document store's own counts."""
        for name, count in counts.items():
            if name == "raw_messages":
                self._pending.labels(tenant).set(count)
            elif name == "unindexed":
                self._unindexed.labels(tenant).set(count)
            else:
                self._rows.labels(tenant, name).set(count)

    def text(self, *, tenant: str | None = None) -> bytes:
        """All series, or those without a tenant and those of this one."""
        return generate_latest(self.registry if tenant is None else _OfTenant(self.registry, tenant))


class _OfTenant(Collector):
    """A registry without the series of other tenants."""

    def __init__(self, registry: CollectorRegistry, tenant: str) -> None:
        self._registry = registry
        self._tenant = tenant

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            shown = Metric(metric.name, metric.documentation, metric.type, metric.unit)
            shown.samples = [s for s in metric.samples if s.labels.get("tenant", self._tenant) == self._tenant]
            yield shown
