// The HTTP API. Paths are relative to the page, so that the console also works behind a proxy with a path prefix.

import { remember, remembered } from "./dom.js";

const KEY = "evercore.key";

/** What the API answered instead of data; the fields are those of its error envelope. */
export class ApiError extends Error {
  constructor({ status, code, message, details = {}, request_id = "", retryAfter = "" }) {
    super(message);
    Object.assign(this, { status, code, details, requestId: request_id, retryAfter });
  }
}

/** The key lives as long as the browser tab, and is sent to this server only. */
export const apiKey = {
  get: () => remembered(sessionStorage, KEY),
  set: (key) => remember(sessionStorage, KEY, key),
};

/** The `data` of an answer. ApiError for everything else, with status 0 where no answer came. */
export async function call(method, path, body) {
  const headers = { Accept: "application/json" };
  const key = apiKey.get();
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(new URL(path, document.baseURI), { method, headers, body: body && JSON.stringify(body) });
  } catch (fault) {
    throw new ApiError({ status: 0, code: "UNREACHABLE", message: String(fault.message ?? fault) });
  }
  const text = await response.text();
  let parsed = {};
  try {
    parsed = text ? JSON.parse(text) : {};
  } catch {
    parsed = { code: "NOT_JSON", message: text.slice(0, 300) };
    if (response.ok) throw new ApiError({ status: response.status, ...parsed });
  }
  if (!response.ok) {
    const retryAfter = response.headers.get("Retry-After") ?? "";
    throw new ApiError({ code: "ERROR", message: response.statusText, ...parsed, status: response.status, retryAfter });
  }
  return parsed.data;
}

export const get = (path) => call("GET", path);
export const post = (path, body) => call("POST", path, body);
