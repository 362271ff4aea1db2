"""What each ingredient of search is worth: recall with all of them, and without one at a time.

    python -m benchmarks.retrieval --locomo locomo.jsonl.gz --memdaily memdaily.jsonl.gz --json out.json
    python -m benchmarks.retrieval --longmemeval longmemeval_s.jsonl.gz --limit 20

Every haystack is added and flushed into an embedded store of its own, through the program's own pipeline, and every
question is searched there without a server. A rank is all hits by score, each taken apart into its messages; k counts
distinct units. No answer is written and no model judges. Also says how many texts were embedded for one message.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.question_sets import Haystack, Question, locomo, longmemeval, memdaily
from models.factory import build_embedder
from models.settings import ModelSettings
from pipelines.add import add
from pipelines.assemble import tools_of
from pipelines.intake import messages_of_request
from pipelines.settings import PipelineSettings
from pipelines.tools import Tools
from pipelines.window import build_conversation
from primitives.clock import now_ms
from serve.evidence import WEIGHTS
from serve.query import make_query
from serve.retrieval import Answer, Retriever
from storage.settings import StorageSettings
from storage.sqlite import open_backend

DEPTH = 20
ALL_TYPES = ("episodic_memory", "atomic_fact", "raw_message")
VARIANTS: dict[str, dict[str, Any]] = {
    "all": {},
    "without neighbours": {"weights": replace(WEIGHTS, neighbours=())},
    "without the episode beside a message": {"weights": replace(WEIGHTS, topic=0.0)},
    "without the best message beside an episode": {"weights": replace(WEIGHTS, lift=0.0)},
    "without time": {"weights": replace(WEIGHTS, moment=0.0)},
    "half the weight of words": {"weights": replace(WEIGHTS, words=WEIGHTS.words / 2)},
    "twice the weight of words": {"weights": replace(WEIGHTS, words=WEIGHTS.words * 2)},
    "reciprocal rank fusion": {"fusion": "rrf"},
    "keyword": {"method": "keyword"},
    "vector": {"method": "vector"},
}


async def fill(tools: Tools, haystack: Haystack) -> tuple[int, int]:
    """Add and flush all sessions; (messages, texts embedded)."""
    messages = embedded = 0
    for session, said in haystack.sessions.items():
        made = messages_of_request(said, tenant_id=tools.stores.tenant_id, owner=haystack.owner, session_id=session,
                                   imported_at=now_ms(), max_bytes=tools.settings.message_max_bytes)  # fmt: skip
        await add(tools, made)
        report = await build_conversation(tools, made[0].conversation_id, wait_s=60)
        messages, embedded = messages + report.messages, embedded + report.embedded
    return messages, embedded


def ranked_units(found: Answer, haystack: Haystack) -> list[str]:
    hits = sorted((hit for kind in found.hits for hit in found.hits[kind]), key=lambda hit: -hit.score)
    return list(dict.fromkeys(haystack.unit_of[key] for hit in hits for key in hit.row.source_message_ids))


def scores(ranked: list[list[str]], questions: list[Question]) -> dict[str, float]:
    """Means over the questions: any, all and recall at 1, 5 and 10."""
    sums: dict[str, float] = {}
    for units, question in zip(ranked, questions, strict=True):
        for k in (1, 5, 10):
            share = len(question.gold & set(units[:k])) / len(question.gold)
            for name, value in ((f"any@{k}", share > 0), (f"all@{k}", share == 1), (f"recall@{k}", share)):
                sums[name] = sums.get(name, 0.0) + float(value)
    return {name: round(value / len(questions), 4) for name, value in sums.items()}


async def measure(name: str, haystacks: list[Haystack], types: tuple[str, ...]) -> dict[str, Any]:
    embedder = build_embedder(ModelSettings())
    with tempfile.TemporaryDirectory() as folder:
        backend = open_backend(StorageSettings(evercore_data_dir=Path(folder)))
        tools = await tools_of(backend, embedder, PipelineSettings(), tenant_id="default")
        counts = [await fill(tools, haystack) for haystack in haystacks]
        messages, embedded = map(sum, zip(*counts, strict=True))
        report: dict[str, Any] = {"messages": messages, "texts embedded a message": round(embedded / messages, 3)}
        asked = [(haystack, question) for haystack in haystacks for question in haystack.questions]
        report["questions"] = len(asked)
        print(f"\n{name}: {report}")
        for label, options in VARIANTS.items():
            method = options.get("method", "hybrid")
            retriever = Retriever(stores=tools.stores, embedder=embedder,
                                  **{key: value for key, value in options.items() if key != "method"})  # fmt: skip
            ranked = []
            for haystack, question in asked:
                owner = haystack.owner.model_dump(exclude_none=True)
                query = make_query(text=question.text, filters=owner, method=method, memory_types=types, top_k=DEPTH,
                                   as_of=question.asked_at)  # fmt: skip
                ranked.append(ranked_units(await retriever.search(query), haystack))
            report[label] = scores(ranked, [question for _, question in asked])
            print(f"  {label:44}", "  ".join(f"{key} {value:.3f}" for key, value in report[label].items()), flush=True)
        await backend.close()
    await embedder.close()
    return report


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("locomo", "memdaily", "longmemeval"):
        parser.add_argument(f"--{name}", type=Path, metavar="FILE")
    parser.add_argument("--limit", type=int, help="only the first so many haystacks of each file")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    plans = []
    if options.locomo:
        plans.append(("LoCoMo turns", locomo(options.locomo), ALL_TYPES[1:]))
        plans.append(("LoCoMo sessions", locomo(options.locomo, sessions=True), ALL_TYPES))
    if options.memdaily:
        plans.append(("MemDaily messages", memdaily(options.memdaily), ALL_TYPES))
    if options.longmemeval:
        plans.append(("LongMemEval sessions, user turns", longmemeval(options.longmemeval), ALL_TYPES))
    if not plans:
        parser.error("name at least one file")
    report = {name: await measure(name, haystacks[: options.limit], types) for name, haystacks, types in plans}
    if options.json:
        options.json.write_text(json.dumps(report, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
