// Building the page. Everything that is shown goes through textContent, so that no text can become markup.

/** An element: `el("p", {class: "quiet", onclick: f}, "text", child)`. Empty children (null, false, "") are left out. */
export function el(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child || child === 0).map((child) =>
    child instanceof Node ? child : document.createTextNode(String(child))));
  return made;
}

export const byId = (id) => document.getElementById(id);

/** Put children in the place of all that was in `parent`. */
export function fill(parent, ...children) {
  parent.replaceChildren(...children.flat(Infinity).filter(Boolean));
}

/** Run `work` while `buttons` are disabled, so that one click is one request; the focus stays where it was. */
export async function whileBusy(buttons, work) {
  const held = buttons.filter((button) => !button.disabled);
  const focused = held.find((button) => button === document.activeElement);
  for (const button of held) button.disabled = true;
  try {
    return await work();
  } finally {
    for (const button of held) button.disabled = false;
    if (document.activeElement === document.body || document.activeElement === focused) focused?.focus();
  }
}

/** The form's checked or typed value of a name. */
export const valueOf = (form, name) => new FormData(form).get(name)?.trim() ?? "";

/** What a browser may refuse to keep (private windows, full storage) is not worth an error. */
export function remember(storage, key, value) {
  try {
    if (value) storage.setItem(key, value);
    else storage.removeItem(key);
  } catch (fault) {
    console.warn(`cannot keep ${key}:`, fault);
  }
}

export function remembered(storage, key) {
  try {
    return storage.getItem(key) ?? "";
  } catch (fault) {
    console.warn(`cannot read ${key}:`, fault);
    return "";
  }
}
