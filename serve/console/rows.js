// Messages and memories as they stand in lists.

import { el } from "./dom.js";
import { openMemory } from "./memory.js";
import { number, t, typeName, when } from "./words.js";

const LONG = 360;

/** One raw message; `state` says whether it is still accumulated, `mark` is a class. */
export function messageItem(message, { state = false, mark = "" } = {}) {
  const waiting = !message.memcell_id;
  return el("li", { class: `message ${mark}`, "data-state": waiting ? "accumulated" : "consumed" },
    el("header", {}, el("b", {}, message.sender_name || message.sender_id), el("time", { datetime: message.timestamp }, when(message.timestamp)),
      state && el("span", { class: `tag ${waiting ? "waiting" : ""}`, title: message.memcell_id ?? "" }, t(waiting ? "waiting" : "consumed"))),
    el("p", {}, message.content));
}

/** {title, text} of a row of any type. */
export function wordsOf(row) {
  switch (row.memory_type) {
    case "episodic_memory": return { title: row.subject, text: row.episode || row.summary };
    case "atomic_fact": return { title: "", text: row.atomic_fact };
    case "foresight": return { title: "", text: [row.content, row.start_time, row.end_time].filter(Boolean).join(" · ") };
    case "profile": return { title: row.user_id, text: [...row.explicit_info, ...row.implicit_traits].map((item) => `${item.category}: ${item.description}`).join("\n") };
    case "raw_message": return { title: "", text: row.content };
    case "agent_case": return { title: row.task_intent, text: row.approach };
    case "agent_skill": return { title: row.name, text: row.description };
    default: return { title: row.memory_type, text: row.text ?? "" };
  }
}

/** One memory: score where it was searched for, type, date, words, and the way to its sources. */
export function card(row) {
  const { title, text } = wordsOf(row);
  const facts = row.atomic_facts ?? [];
  return el("li", { class: "card", "data-type": row.memory_type, "data-id": row.id },
    el("header", {},
      row.score !== undefined && scoreMark(row),
      el("span", { class: "tag type" }, typeName(row.memory_type)),
      el("time", { datetime: row.timestamp }, when(row.timestamp)),
      row.memory_type === "raw_message" && el("span", {}, row.sender_name || row.sender_id),
      el("button", { class: "plain open", type: "button", onclick: () => openMemory(row.id), "aria-label": `${t("open")}: ${(title || text).slice(0, 60)}` }, t("open"))),
    title && el("h3", {}, title),
    text !== title && el("p", { class: text.length > LONG ? "long" : "" }, text),
    facts.length > 0 && el("ul", { "aria-label": t("facts") }, facts.map((fact) => el("li", {}, fact.atomic_fact))),
    row.scores && el("div", { class: "parts quiet" }, Object.entries(row.scores).map(([name, value]) => `${name} ${value.toFixed(3)}`).join("  ")));
}

function scoreMark(row) {
  const mark = el("span", { class: "score" }, row.score.toFixed(2));
  mark.style.setProperty("--part", Math.min(1, Math.max(0, row.score)));
  return mark;
}

/** A line that opens another memory. */
export function memoryLink(row) {
  const { title, text } = wordsOf(row);
  return el("li", {}, el("span", { class: "tag type" }, typeName(row.memory_type)),
    el("button", { class: "link", type: "button", onclick: () => openMemory(row.id) }, (title || text).slice(0, 120)));
}

export const countOf = (key, n) => t(key, { n: number(n) });
