// The drawer that shows one memory: its words and fields, its topic, and the messages it comes from.

import { get } from "./api.js";
import { byId, el, fill } from "./dom.js";
import { errorNotice, notice } from "./notices.js";
import { countOf, memoryLink, messageItem, wordsOf } from "./rows.js";
import { t, typeName, when } from "./words.js";

const drawer = byId("memory");
const FIELDS = ["user_id", "group_id", "session_id", "sender_id", "participants", "valid_from", "valid_to", "superseded_by", "tags", "language", "strength", "revision"];

byId("close").addEventListener("click", () => drawer.close());
drawer.addEventListener("click", (event) => {
  if (event.target === drawer && event.offsetX < 0) drawer.close(); // a click beside it, on the backdrop
});

let shown = "";

/** Show a memory at its sources; from inside the drawer, in its place. */
export async function openMemory(id) {
  shown = id;
  byId("memory-title").textContent = "…";
  fill(byId("memory-body"));
  if (!drawer.open) drawer.showModal();
  try {
    const found = await get(`api/v1/memories/${encodeURIComponent(id)}/sources`);
    if (shown === id) show(found);
  } catch (fault) {
    if (shown === id) fill(byId("memory-body"), errorNotice(fault));
  }
  drawer.scrollTop = 0;
}

function show({ memory, topics, pending }) {
  const { title, text } = wordsOf(memory);
  byId("memory-title").textContent = typeName(memory.memory_type);
  fill(byId("memory-body"),
    title && title !== text && el("p", { class: "body" }, el("strong", {}, title)),
    el("p", { class: "body" }, text),
    fields(memory, topics),
    el("h3", {}, t("sources")),
    pending.length > 0 && [notice("warn", t("inNoTopic")), list(pending)],
    topics.length > 0 && el("p", { class: "quiet" }, t("sourceLegend")),
    !topics.length && !pending.length && notice("", t("noSources")),
    topics.map((topic) => topicPart(topic, memory)));
}

function fields(memory, topics) {
  const rows = [["id", el("code", {}, memory.id)], ["timestamp", when(memory.timestamp)]];
  for (const name of FIELDS) {
    const value = memory[name];
    if (value === null || value === undefined || value.length === 0) continue;
    rows.push([name, Array.isArray(value) ? value.join(", ") : name.startsWith("valid_") ? when(value) : String(value)]);
  }
  if (memory.memcell_id) rows.push(["memcell_id", el("code", {}, memory.memcell_id)]);
  if (memory.parent_id) {
    const parent = topics.flatMap((topic) => topic.memories).find((row) => row.id === memory.parent_id);
    const link = parent && el("button", { class: "link", type: "button", onclick: () => openMemory(parent.id) }, wordsOf(parent).title || parent.id);
    rows.push([`parent (${memory.parent_type})`, link || el("code", {}, memory.parent_id)]);
  }
  return el("dl", { class: "facts", "aria-label": t("notes") }, rows.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

function topicPart(topic, memory) {
  const others = topic.memories.filter((row) => row.id !== memory.id);
  return el("section", {},
    el("p", { class: "quiet" }, `${t("topic")} `, el("code", {}, topic.memcell_id), ` · ${topic.state} · ${topic.detector} · ${countOf("messagesOf", topic.messages.length)}`),
    list(topic.messages),
    others.length > 0 && [el("h3", {}, t("siblings")), el("ul", { class: "links" }, others.map(memoryLink))]);
}

const list = (messages) => el("ol", { class: "messages" }, messages.map((message) =>
  messageItem(message, { state: true, mark: message.is_source ? "source" : "context" })));
