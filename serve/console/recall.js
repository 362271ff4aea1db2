// Searching and browsing memories.

import { post } from "./api.js";
import { byId, el, fill, valueOf, whileBusy } from "./dom.js";
import { errorNotice, notice } from "./notices.js";
import { ownerFields, ownerMissing } from "./owner.js";
import { card } from "./rows.js";
import { number, t } from "./words.js";

const TYPES = ["episodic_memory", "atomic_fact", "foresight", "profile", "raw_message", "agent_case", "agent_skill"];
const CHOSEN = ["episodic_memory", "atomic_fact", "foresight", "profile", "raw_message"];
const PAGE_SIZE = 10;

const searchForm = byId("search");
const browseForm = byId("browse");
let page = 1;
let searched = null;

export function startRecall() {
  fill(byId("types"), byId("types").querySelector("legend"), TYPES.map((type) =>
    el("label", {}, el("input", { type: "checkbox", name: "type", value: type, checked: CHOSEN.includes(type) }), el("span", { "data-t": type }))));
  fill(browseForm.elements.type, TYPES.map((type) => el("option", { value: type, "data-t": type })));
  searchForm.addEventListener("submit", (event) => {
    event.preventDefault();
    search();
  });
  searchForm.addEventListener("change", (event) => {
    showMethod();
    if (event.target.name !== "query" && searched !== null) search(); // another method or type of the same question
  });
  browseForm.addEventListener("change", () => turnTo(1));
  browseForm.addEventListener("submit", (event) => event.preventDefault());
  byId("back").addEventListener("click", () => turnTo(page - 1));
  byId("on").addEventListener("click", () => turnTo(page + 1));
}

// ---- search

export function showMethod() {
  byId("method-hint").textContent = t(`${valueOf(searchForm, "method")}Hint`);
}

let asked = 0;

async function search() {
  const turn = ++asked;
  const query = valueOf(searchForm, "query");
  const missing = ownerMissing() || (query ? "" : t("blankQuery"));
  if (missing) return fill(byId("search-notice"), notice("warn", missing));
  const body = {
    query, method: valueOf(searchForm, "method"), memory_types: new FormData(searchForm).getAll("type"),
    filters: ownerFields(), top_k: Number(valueOf(searchForm, "top_k")) || 5,
  };
  try {
    const data = await post("api/v1/memories/search", body);
    if (turn < asked) return;
    searched = data;
    showHits();
  } catch (fault) {
    if (turn < asked) return;
    searched = null;
    fill(byId("hits"));
    fill(byId("search-notice"), errorNotice(fault));
  }
}

/** All types in one list: scores are comparable within an answer. */
function hitsOf(data) {
  const lists = [data.episodes, data.atomic_facts, data.foresights, data.profiles, data.raw_messages, data.agent_memory.cases, data.agent_memory.skills];
  return lists.flat().sort((a, b) => b.score - a.score);
}

export function showHits() {
  if (searched === null) return;
  const hits = hitsOf(searched);
  const { total = 0, ...parts } = searched.timings_ms;
  const timing = Object.entries(parts).map(([name, ms]) => `${name} ${ms.toFixed(1)}`).join(", ");
  const degraded = Object.entries(searched.degraded);
  fill(byId("search-notice"),
    degraded.length > 0 && notice("warn", el("strong", {}, t("degraded")), degraded.map(([part, reason]) => el("p", {}, `${part}: ${reason}`))),
    searched.truncated && notice("warn", t("truncated")),
    el("p", { class: "quiet", id: "found" }, t("found", { n: number(hits.length), ms: total.toFixed(1), parts: timing })));
  fill(byId("hits"), hits.length ? hits.map(card) : el("li", { class: "empty" }, t("noHits")));
}

/** An answer about another owner must not stay on the page. */
export function forgetHits() {
  asked += 1;
  searched = null;
  fill(byId("hits"));
  fill(byId("search-notice"));
}

// ---- browse

let turned = 0;

export async function turnTo(wanted) {
  const turn = ++turned;
  const missing = ownerMissing();
  if (missing) return fill(byId("browse-notice"), notice("warn", missing));
  const body = {
    memory_type: valueOf(browseForm, "type"), filters: ownerFields(), page: wanted, page_size: PAGE_SIZE,
    rank_order: valueOf(browseForm, "order"),
  };
  await whileBusy([byId("back"), byId("on")], async () => {
    try {
      const { total_count: total, count, ...lists } = await post("api/v1/memories/get", body);
      if (turn < turned) return;
      page = wanted;
      fill(byId("browse-notice"));
      showRows(Object.values(lists)[0], { total, count });
    } catch (fault) {
      if (turn < turned) return;
      fill(byId("rows"));
      fill(byId("browse-notice"), errorNotice(fault));
    }
  });
  byId("back").disabled = page <= 1;
  byId("on").disabled = !more;
}

let more = false;

function showRows(rows, { total, count }) {
  const before = (page - 1) * PAGE_SIZE;
  more = before + count < total;
  byId("place").textContent = count ? t("place", { from: number(before + 1), to: number(before + count), total: number(total) }) : "";
  fill(byId("rows"), rows.length ? rows.map(card) : el("li", { class: "empty" }, t("noRows")));
}

export const browsing = () => !byId("browse-panel").hidden;

/** Show the same page again, in another language or after new memories came. */
export const showPage = () => (browsing() ? turnTo(page) : undefined);
