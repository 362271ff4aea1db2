// What the console says, in Chinese and English. A server's own words (errors, notices) are shown as they come.

import { remember, remembered } from "./dom.js";

export const WORDS = {
  zh: {
    console: "控制台", apiKey: "API 密钥", theme: "主题", themeAuto: "跟随系统", themeLight: "浅色",
    themeDark: "深色", serverReady: "已连接", serverAway: "连接不上", counters: "存储计数", refresh: "刷新", close: "关闭",
    owner: "记忆的主人", scene: "场景", solo: "个人", group: "群组", optional: "可选",
    write: "写入消息", role: "角色", roleUser: "用户", roleAssistant: "助手", message: "消息", messageHint: "说点值得记住的事 …",
    examples: "示例：", send: "发送", flush: "Flush", recall: "回忆", search: "搜索", browse: "浏览", query: "查询",
    queryHint: "想找什么？", method: "方法", keyword: "关键词", vector: "向量", hybrid: "混合", agentic: "智能体",
    types: "记忆类型", type: "类型", order: "顺序", newest: "最新在前", oldest: "最早在前", back: "上一页", on: "下一页",
    episodic_memory: "情景记忆", atomic_fact: "原子事实", foresight: "前瞻记忆", profile: "用户画像", raw_message: "原始消息",
    agent_case: "智能体经验", agent_skill: "智能体技能",
    documents: "文档库 · MongoDB 的角色", vectors: "向量索引", keywords: "关键词索引",
    accumulated: "accumulated，原文共 {n} 条", role_of: "{store} 的角色",
    keywordHint: "按词匹配（BM25）；消息一发送就能找到。", vectorHint: "按意思匹配（余弦相似度）；Flush 之后可用。",
    hybridHint: "关键词与向量并行，再融合排序；推荐。", agenticHint: "多轮召回，由语言模型判断是否足够。",
    changedBy: "较「{action}」之前", noChange: "较「{action}」之前：没有变化", backlog: "还有 {n} 行等待索引",
    sent: "已接收，状态 {status}：新增 {added} 条，待处理 {pending} 条。", duplicate: "其中 {n} 条早已存在。",
    blankMessage: "请先写点内容。", blankOwner: "请先填写 {name}。", blankSender: "群组里每条消息都要有 sender_id。", blankQuery: "请先写要找什么。",
    flushed: "已提取：{memcells} 个 MemCell，{memories}。", nothingFlushed: "没有待处理的消息，什么也没提取。",
    skipped: "已略过：{list}", nothing: "没有新记忆", waiting: "accumulated", consumed: "已成为记忆",
    pendingCount: "{pending} 条待处理（最近 {shown} 条，共 {total} 条）", noMessages: "这里还没有消息。",
    found: "{n} 条结果，{ms} 毫秒（{parts}）", noHits: "没有找到。换个词，或换个方法试试。", degraded: "降级", truncated: "结果太多，只显示前面的部分。",
    facts: "相关事实", open: "来源", place: "{from}–{to}，共 {total} 条", noRows: "这里还没有这类记忆。", noTime: "时间未知",
    sources: "来源消息", topic: "话题（MemCell）", siblings: "同一话题的其他记忆", parent: "上级", notes: "说明",
    sourceLegend: "左侧有线的是这条记忆的来源，其余是同一话题的上下文。", inNoTopic: "这条消息还没有进入任何话题；Flush 之后就会有。",
    noSources: "没有留下来源消息。", messagesOf: "{n} 条消息",
    unauthorized: "需要有效的 API 密钥", unreachable: "连接不到服务器", failed: "服务器没有接受", retryAfter: "请在 {n} 秒后重试。",
    send_action: "发送", flush_action: "Flush",
  },
  en: {
    console: "console", apiKey: "API key", theme: "Theme", themeAuto: "Auto", themeLight: "Light",
    themeDark: "Dark", serverReady: "Connected", serverAway: "Not reachable", counters: "Stores", refresh: "Refresh", close: "Close",
    owner: "Whose memory", scene: "Scene", solo: "Solo", group: "Group", optional: "optional",
    write: "Write messages", role: "Role", roleUser: "User", roleAssistant: "Assistant", message: "Message",
    messageHint: "Say something worth remembering …", examples: "Try:", send: "Send", flush: "Flush", recall: "Recall",
    search: "Search", browse: "Browse", query: "Query", queryHint: "What are you looking for?", method: "Method",
    keyword: "Keyword", vector: "Vector", hybrid: "Hybrid", agentic: "Agentic", types: "Memory types", type: "Type",
    order: "Order", newest: "Newest first", oldest: "Oldest first", back: "Previous", on: "Next",
    episodic_memory: "Episode", atomic_fact: "Fact", foresight: "Foresight", profile: "Profile", raw_message: "Message",
    agent_case: "Agent case", agent_skill: "Agent skill",
    documents: "Documents · in MongoDB’s role", vectors: "Vector index", keywords: "Keyword index",
    accumulated: "accumulated, of {n} kept", role_of: "in {store}’s role",
    keywordHint: "Matches words (BM25); finds a message as soon as it is sent.", vectorHint: "Matches meaning (cosine); works after a flush.",
    hybridHint: "Keyword and vector side by side, then fused; recommended.", agenticHint: "Several rounds; a language model judges whether enough was found.",
    changedBy: "Change since before “{action}”", noChange: "No change since before “{action}”", backlog: "{n} rows wait for indexing",
    sent: "Accepted, status {status}: {added} added, {pending} pending.", duplicate: "{n} were there already.",
    blankMessage: "Write something first.", blankOwner: "Fill in {name} first.", blankSender: "In a group, each message needs a sender_id.", blankQuery: "Say what to look for first.",
    flushed: "Extracted: MemCells {memcells}, {memories}.", nothingFlushed: "No message was pending, so nothing was extracted.",
    skipped: "Left out: {list}", nothing: "no new memories", waiting: "accumulated", consumed: "in memory",
    pendingCount: "{pending} pending (latest {shown} of {total})", noMessages: "No messages here yet.",
    found: "Results: {n}, in {ms} ms ({parts})", noHits: "Nothing found. Try other words or another method.", degraded: "Degraded", truncated: "There were more; only the first are shown.",
    facts: "Matching facts", open: "Sources", place: "{from}–{to} of {total}", noRows: "No memories of this type here yet.", noTime: "time unknown",
    sources: "Source messages", topic: "Topic (MemCell)", siblings: "Other memories of the topic", parent: "Parent", notes: "Fields",
    sourceLegend: "Messages with a line are what this memory was made from; the others are their context.",
    inNoTopic: "This message is in no topic yet; a flush puts it into one.", noSources: "No source message is left.", messagesOf: "messages: {n}",
    unauthorized: "A valid API key is needed", unreachable: "The server cannot be reached", failed: "The server did not accept this",
    retryAfter: "Try again in {n} s.", send_action: "Send", flush_action: "Flush",
  },
};

export const EXAMPLES = {
  zh: ["我喜欢路小雨", "我今天去了上海博物馆，看到了青铜器展览", "下周六我打算带妈妈再去看一次"],
  en: ["I like Lu Xiaoyu", "I went to the Shanghai Museum today and saw the bronze exhibition", "Next Saturday I will take my mother there again"],
};

const LANGUAGE = "evercore.language";

function preferred() {
  const kept = remembered(localStorage, LANGUAGE);
  if (kept in WORDS) return kept;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

let current = preferred();

export const language = () => current;

/** The words of a key, with `{name}` replaced by the values' text. */
export function t(key, values = {}) {
  const words = WORDS[current][key];
  if (words === undefined) throw new Error(`no words for ${key}`);
  return words.replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
}

/** The words of a memory type; the API's own name where a server knows more types than this page. */
export const typeName = (type) => (type in WORDS[current] ? t(type) : type);

/** Say everything that stands in the page in `chosen`, or in the language that is used already. */
export function speak(chosen = current) {
  if (chosen !== current) remember(localStorage, LANGUAGE, chosen);
  current = chosen;
  document.documentElement.lang = chosen === "zh" ? "zh-CN" : "en";
  document.title = `EverCore ${t("console")}`;
  for (const place of document.querySelectorAll("[data-t]")) place.textContent = t(place.dataset.t);
  for (const place of document.querySelectorAll("[data-t-placeholder]")) place.placeholder = t(place.dataset.tPlaceholder);
}

export const number = (value) => new Intl.NumberFormat(document.documentElement.lang).format(value);

/** An event time of the API (ISO 8601 or null) in the visitor's own zone. */
export function when(iso) {
  if (!iso) return t("noTime");
  const format = { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  return new Intl.DateTimeFormat(document.documentElement.lang, format).format(new Date(iso));
}
