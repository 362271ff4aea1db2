// The counters of the stores, and how the last action moved them.

import { get } from "./api.js";
import { byId, el, fill } from "./dom.js";
import { errorNotice } from "./notices.js";
import { number, t } from "./words.js";

const PAUSE_MS = 5_000;
const PATIENCE = 10; // a server that counts for a second is asked every ten seconds

/** Name on the page, where it stands in the answer, in the order of the mission's table. */
const COUNTERS = [
  ["raw_messages", "documents", (s) => s.pending_messages],
  ["memcells", "documents", (s) => s.documents.memcells],
  ["episodic_memories", "documents", (s) => s.documents.episodic_memory],
  ["atomic_facts", "documents", (s) => s.documents.atomic_fact],
  ["foresights", "documents", (s) => s.documents.foresight],
  ["profiles", "documents", (s) => s.documents.profile],
  ["milvus", "vectors", (s) => entries(s, "vector")],
  ["elasticsearch", "keywords", (s) => entries(s, "keyword")],
];

const entries = (stats, kind) => stats.indexes.find((index) => index.kind === kind && index.live)?.entries ?? 0;

let latest = null;
let before = null;
let action = "";
let asked = 0;
let answered = 0;

/** Keep what the counters show now; what they show later is told as a change since before `name`. */
export async function beginAction(name) {
  await refresh();
  before = latest;
  action = name;
}

/** Ask the server and show what it says. An answer that comes behind a later one's is old, and left out. */
export async function refresh() {
  const turn = ++asked;
  try {
    const stats = await get("api/v1/stats");
    if (turn < answered) return;
    answered = turn;
    latest = stats;
    fill(byId("stats-notice"));
    reachable(true);
  } catch (fault) {
    if (turn < answered) return;
    answered = turn;
    fill(byId("stats-notice"), errorNotice(fault));
    reachable(fault.status !== 0);
  }
  show();
}

/** Refresh while somebody looks, so that a backfill or the sweeper can be watched. */
export async function keepFresh() {
  byId("refresh").addEventListener("click", refresh);
  for (;;) {
    const began = performance.now();
    if (!document.hidden) await refresh();
    const took = performance.now() - began;
    await new Promise((wake) => setTimeout(wake, Math.max(PAUSE_MS, PATIENCE * took)));
  }
}

function reachable(up) {
  const place = byId("server");
  place.className = `server ${up ? "up" : "down"}`;
  const said = t(up ? "serverReady" : "serverAway");
  if (place.textContent !== said) place.textContent = said; // a live region speaks on every change
}

export function show() {
  if (latest === null) return;
  const changes = [];
  const stores = ["documents", "vectors", "keywords"].map((store) =>
    el("div", { class: "store" }, el("h3", { title: t(store) }, t(store)),
      el("dl", {}, COUNTERS.filter(([, of]) => of === store).map(([name, , read]) => {
        const change = before === null ? 0 : read(latest) - read(before);
        if (change) changes.push(`${name} ${signed(change)}`);
        return counter(name, read(latest), change);
      }))));
  fill(byId("stores"), stores);
  const said = before === null ? "" : t(changes.length ? "changedBy" : "noChange", { action: t(action) });
  const backlog = latest.unindexed ? t("backlog", { n: number(latest.unindexed) }) : "";
  const line = [said, backlog].filter(Boolean).join(" · ");
  // A live region speaks on every change; the numbers are for those who cannot see them beside the counters.
  const spoken = changes.length ? `: ${changes.join(", ")}` : "";
  if (byId("change").textContent !== line + spoken) fill(byId("change"), line, el("span", { class: "unseen" }, spoken));
}

const signed = (change) => (change > 0 ? `+${number(change)}` : `−${number(-change)}`);

function counter(name, value, change) {
  const notes = {
    raw_messages: t("accumulated", { n: number(latest.documents.raw_message) }),
    milvus: t("role_of", { store: "Milvus" }),
    elasticsearch: t("role_of", { store: "Elasticsearch" }),
  };
  return el("div", { class: "counter", "data-counter": name }, el("dt", {}, name),
    el("dd", {}, el("span", { class: "value" }, number(value)),
      change !== 0 && el("span", { class: `delta ${change > 0 ? "more" : "less"}` }, signed(change))),
    el("small", {}, notes[name] ?? ""));
}
