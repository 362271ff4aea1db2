// Adding messages and flushing them, and the messages of the owner with what has become of each.

import { post } from "./api.js";
import { beginAction, refresh } from "./counters.js";
import { byId, el, fill, valueOf, whileBusy } from "./dom.js";
import { errorNotice, notice } from "./notices.js";
import { owner, ownerFields, ownerMissing } from "./owner.js";
import { messageItem } from "./rows.js";
import { EXAMPLES, language, number, t, typeName } from "./words.js";

const SHOWN = 50;
const form = byId("write");
const content = byId("content");

/** What was said last, as a function: in another language it is said again. */
let said = () => null;
const say = (build) => {
  said = build;
  sayAgain();
};
export const sayAgain = () => fill(byId("write-notice"), said());
export const sayNothing = () => say(() => null);

export function startWriting(changed) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    busy(() => send().then(changed));
  });
  byId("flush").addEventListener("click", () => busy(() => flush().then(changed)));
  content.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.isComposing) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
}

async function busy(work) {
  await whileBusy([byId("send"), byId("flush")], async () => {
    try {
      await work();
    } catch (fault) {
      say(() => errorNotice(fault));
    }
  });
}

/** In the language of the page; choosing one only fills the field, so that nothing is stored by accident. */
export function showExamples() {
  fill(byId("examples"), el("span", {}, t("examples")), EXAMPLES[language()].map((text) =>
    el("button", { type: "button", onclick: () => { content.value = text; content.focus(); } }, text)));
}

async function send() {
  const missing = ownerMissing() || problem();
  if (missing) return say(() => notice("warn", missing));
  const { scene } = owner();
  const typed = content.value;
  const message = { content: typed, timestamp: Date.now(), role: "user" };
  if (scene === "solo") message.role = valueOf(form, "role");
  else message.sender_id = valueOf(form, "sender");
  await beginAction("send_action");
  const data = await post(`api/v1/memories${scene === "group" ? "/group" : ""}`, { ...ownerFields(), messages: [message] });
  if (content.value === typed) content.value = ""; // what was typed meanwhile is the next message
  content.focus();
  say(() => notice("good", t("sent", { status: data.status, added: number(data.added), pending: number(data.pending) }),
    data.duplicates > 0 && ` ${t("duplicate", { n: number(data.duplicates) })}`));
  await Promise.all([refresh(), showMessages()]);
}

function problem() {
  if (!content.value.trim()) {
    content.focus();
    return t("blankMessage");
  }
  if (owner().scene === "group" && !valueOf(form, "sender")) {
    form.elements.sender.focus();
    return t("blankSender");
  }
  return "";
}

async function flush() {
  const missing = ownerMissing();
  if (missing) return say(() => notice("warn", missing));
  await beginAction("flush_action");
  const data = await post(`api/v1/memories${owner().scene === "group" ? "/group" : ""}/flush`, ownerFields());
  say(() => flushNotice(data));
  await Promise.all([refresh(), showMessages()]);
}

function flushNotice(data) {
  if (data.status !== "extracted") return notice("", t("nothingFlushed"));
  const memories = Object.entries(data.memories).filter(([, n]) => n > 0).map(([type, n]) => `${typeName(type)} ${number(n)}`);
  const skipped = Object.entries(data.skipped).map(([type, reason]) => `${type} (${reason})`);
  return notice("good",
    t("flushed", { memcells: number(data.memcells), memories: memories.join(language() === "zh" ? "，" : ", ") || t("nothing") }),
    skipped.length > 0 && el("p", { class: "quiet" }, t("skipped", { list: skipped.join(", ") })));
}

let turn = 0;

/** The owner's latest messages, newest first; those in no MemCell yet are the accumulated ones. */
export async function showMessages() {
  const mine = ++turn;
  if (!owner().id) return fill(byId("messages"));
  try {
    const body = { memory_type: "raw_message", filters: ownerFields(), page_size: SHOWN };
    const data = await post("api/v1/memories/get", body);
    if (mine < turn) return;
    const pending = data.raw_messages.filter((message) => !message.memcell_id).length;
    byId("pending-count").textContent = data.total_count
      ? t("pendingCount", { pending: number(pending), shown: number(data.count), total: number(data.total_count) }) : "";
    fill(byId("messages"), data.raw_messages.length
      ? data.raw_messages.map((message) => messageItem(message, { state: true }))
      : el("li", { class: "empty" }, t("noMessages")));
  } catch (fault) {
    if (mine === turn) say(() => errorNotice(fault));
  }
}
