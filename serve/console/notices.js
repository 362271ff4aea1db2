// Short messages about what was just done, good or bad.

import { byId, el } from "./dom.js";
import { t } from "./words.js";

export const notice = (kind, ...content) => el("div", { class: `notice ${kind}` }, ...content);

/** An error of the API: what is wrong, the way out, every fault of the body, and the id to find it by in the logs. */
export function errorNotice(fault) {
  if (fault.status === undefined) throw fault; // not the API's: a fault of this page, which the browser's log must show
  if (fault.status === 401) byId("key").setAttribute("aria-invalid", "true");
  const title = fault.status === 401 ? "unauthorized" : fault.status === 0 ? "unreachable" : "failed";
  const errors = fault.details?.errors ?? [];
  const trace = [fault.status || "", fault.code, fault.requestId].filter(Boolean).join(" · ");
  return el("div", { class: "notice bad", role: "alert" },
    el("strong", {}, t(title)), ": ", fault.message,
    fault.details?.hint && el("p", {}, fault.details.hint),
    fault.retryAfter && el("p", {}, t("retryAfter", { n: fault.retryAfter })),
    errors.length > 1 && el("ul", {}, errors.map((one) => el("li", {}, `${one.field}: ${one.message}`))),
    el("span", { class: "trace" }, trace));
}
