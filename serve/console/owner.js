// Whose memory is looked at: a person's (solo) or a group's, and optionally one session of it.

import { byId, remember, remembered, valueOf } from "./dom.js";
import { t } from "./words.js";

const KEPT = "evercore.owner";

export const form = byId("owner");

/** {scene, name, id, session}; `name` is the API's field of the id. */
export function owner() {
  const scene = valueOf(form, "scene");
  return { scene, name: scene === "solo" ? "user_id" : "group_id", id: valueOf(form, "owner"), session: valueOf(form, "session") };
}

/** The owner as the API's filters and bodies take it. */
export function ownerFields() {
  const { name, id, session } = owner();
  return session ? { [name]: id, session_id: session } : { [name]: id };
}

/** What to tell a visitor who has not said whose memory; "" where all is well. The field then has the focus. */
export function ownerMissing() {
  if (owner().id) return "";
  form.elements.owner.focus();
  return t("blankOwner", { name: owner().name });
}

/** Call `changed` at each change, before anything can be said of the new owner, and `rested` once typing rests. */
export function watchOwner(changed, rested) {
  let timer;
  const kept = remembered(sessionStorage, KEPT);
  const { scene = "solo", id = "user-001", session = "" } = kept ? JSON.parse(kept) : {};
  form.elements.scene.value = scene;
  form.elements.owner.value = id;
  form.elements.session.value = session;
  const show = () => {
    byId("owner-name").textContent = owner().name;
    byId("roles").hidden = owner().scene === "group";
    byId("sender").hidden = owner().scene === "solo";
  };
  show();
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => {
    show();
    changed();
    clearTimeout(timer);
    timer = setTimeout(() => {
      remember(sessionStorage, KEPT, JSON.stringify(owner()));
      rested();
    }, 300);
  });
}
