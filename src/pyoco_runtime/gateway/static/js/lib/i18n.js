// Texts of the page: one catalogue a language, from the gateway.
import config from "./config.js";
import { signal } from "./signal.js";
import { local } from "./store.js";

export const LANGUAGES = ["en", "ja"];

let texts = {};
const current = signal("en");

export function language() {
  return current.read();
}

/** The language, inside a component that must be drawn anew when it changes. */
export function useLanguage() {
  return current.use();
}

/** The text with `{name}` filled in; the key itself if there is none, so that a gap is seen and nothing breaks. */
export function t(key, values = {}) {
  const found = texts[key] ?? key;
  return found.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/** Whether the catalogue has this text. */
export function has(key) {
  return key in texts;
}

/** Speak this language from now on, in this browser. */
export async function setLanguage(lang) {
  await load(lang);
  local.set("lang", lang);
}

/** The viewer's choice, else the gateway's, else the browser's. */
export async function loadLanguage() {
  const wishes = [local.get("lang"), config.lang, ...navigator.languages.map((each) => each.slice(0, 2))];
  await load(wishes.find((each) => LANGUAGES.includes(each)) ?? "en");
}

async function load(lang) {
  const answer = await fetch(`/static/messages/${lang}.json`);
  if (answer.ok) texts = await answer.json();
  document.documentElement.lang = lang;
  current.write(lang);
}
