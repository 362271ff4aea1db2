// The console: starts all parts, and keeps language, theme, API key and tabs.

import { apiKey } from "./api.js";
import { keepFresh, refresh, show as showCounters } from "./counters.js";
import { byId, remember, remembered } from "./dom.js";
import { watchOwner } from "./owner.js";
import { forgetHits, showHits, showMethod, showPage, startRecall, turnTo } from "./recall.js";
import { language, speak } from "./words.js";
import { sayAgain, sayNothing, showExamples, showMessages, startWriting } from "./write.js";

const THEME = "evercore.theme";

function startLanguage() {
  byId("language").value = language();
  byId("language").addEventListener("change", (event) => {
    speak(event.target.value);
    showExamples();
    sayAgain();
    showCounters();
    refresh();
    showMessages();
    showMethod();
    showHits();
    showPage();
  });
}

function startTheme() {
  const theme = byId("theme");
  theme.value = remembered(localStorage, THEME) || "light dark";
  const apply = () => document.documentElement.style.setProperty("color-scheme", theme.value);
  apply();
  theme.addEventListener("change", () => {
    remember(localStorage, THEME, theme.value);
    apply();
  });
}

function startKey() {
  const key = byId("key");
  key.value = apiKey.get();
  byId("key-form").addEventListener("submit", (event) => event.preventDefault()); // Enter is a change, not a way off
  key.addEventListener("change", () => {
    apiKey.set(key.value.trim());
    key.removeAttribute("aria-invalid");
    forgetHits();
    refresh();
    showMessages();
    showPage();
  });
}

/** Tabs as WAI-ARIA has them: one stop of the Tab key, arrows move between them. */
function startTabs() {
  const tabs = [...document.querySelectorAll("[role=tab]")];
  const choose = (chosen) => {
    for (const tab of tabs) {
      tab.setAttribute("aria-selected", String(tab === chosen));
      tab.tabIndex = tab === chosen ? 0 : -1;
      byId(tab.getAttribute("aria-controls")).hidden = tab !== chosen;
    }
    if (chosen.id === "tab-browse") turnTo(1);
  };
  for (const [place, tab] of tabs.entries()) {
    tab.addEventListener("click", () => choose(tab));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = tabs[(place + step + tabs.length) % tabs.length];
      next.focus();
      choose(next);
    });
  }
}

startTheme();
startRecall();
speak();
startLanguage();
startKey();
startTabs();
showExamples();
showMethod();
startWriting(showPage);
watchOwner(() => {
  sayNothing();
  forgetHits();
}, () => {
  showMessages();
  showPage();
});
showMessages();
keepFresh();
