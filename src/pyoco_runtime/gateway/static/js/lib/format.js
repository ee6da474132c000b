// Times, durations and sizes, in the viewer's language and zone.
import { useNow } from "./clock.js";
import { language, t, useLanguage } from "./i18n.js";
import { html } from "./ui.js";

const cache = new Map();

function formatter(name, make) {
  const key = `${language()} ${name}`;
  if (!cache.has(key)) cache.set(key, make(language()));
  return cache.get(key);
}

/** A moment: the time of today, with the date if it is another day; the exact value on hover. */
export function Time({ at }) {
  useLanguage();
  if (typeof at !== "number" || !Number.isFinite(at)) return html`<span class="faint">–</span>`;
  const when = new Date(at * 1000);
  return html`<time datetime=${when.toISOString()} title=${exact(at)}>${brief(when)}</time>`;
}

/** How long ago, kept up to date; the exact value on hover. */
export function Ago({ at }) {
  const now = useNow();
  if (typeof at !== "number") return html`<span class="faint">–</span>`;
  return html`<time datetime=${new Date(at * 1000).toISOString()} title=${exact(at)}>${ago(now - at)}</time>`;
}

/** How long since then, kept up to date. */
export function Since({ at }) {
  const now = useNow();
  return ticking(now - at);
}

/** Date, time to the millisecond and zone. */
export function exact(epochSec) {
  const when = new Date(epochSec * 1000);
  const text = formatter("exact", (lang) => new Intl.DateTimeFormat(lang, {
    year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit",
    fractionalSecondDigits: 3, hourCycle: "h23", timeZoneName: "short",
  })).format(when);
  return `${text} · ${epochSec}`;
}

function brief(when) {
  const isToday = when.toDateString() === new Date().toDateString();
  const clock = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
  const day = { month: "short", day: "numeric" };
  return isToday
    ? formatter("clock", (lang) => new Intl.DateTimeFormat(lang, clock)).format(when)
    : formatter("day", (lang) => new Intl.DateTimeFormat(lang, { ...day, ...clock })).format(when);
}

/** Seconds as words: 8 ms, 1.2 s, 4 min 05 s, 2 h 03 min, 3 d 4 h. */
export function duration(sec) {
  if (typeof sec !== "number" || !Number.isFinite(sec)) return "–";
  if (sec > 0 && sec < 0.0005) return t("ui.shell.dur_ms", { n: "<1" });
  if (sec < 0.9995) return t("ui.shell.dur_ms", { n: Math.max(0, Math.round(sec * 1000)) });
  if (sec < 9.95) return t("ui.shell.dur_s", { n: sec.toFixed(1) });
  const whole = Math.round(sec);
  if (whole < 60) return t("ui.shell.dur_s", { n: whole });
  if (whole < 3600) return t("ui.shell.dur_min", { m: Math.floor(whole / 60), s: two(whole % 60) });
  const minutes = Math.floor(whole / 60);
  if (minutes < 1440) return t("ui.shell.dur_h", { h: Math.floor(minutes / 60), m: two(minutes % 60) });
  const hours = Math.floor(minutes / 60);
  return t("ui.shell.dur_d", { d: Math.floor(hours / 24), h: hours % 24 });
}

/** A duration that grows as one looks: whole seconds, so that it changes once a second and not in its width. */
export function ticking(sec) {
  if (typeof sec !== "number") return "–";
  return sec < 10 ? t("ui.shell.dur_s", { n: Math.max(0, Math.floor(sec)) }) : duration(Math.floor(sec));
}

/** "12 s ago", from the number of seconds since. */
export function ago(sec) {
  return sec < 1 ? t("ui.shell.just_now") : t("ui.shell.ago", { time: ticking(sec) });
}

/** A size: 512 B, 4.0 KiB, 12 MiB. */
export function bytes(n) {
  if (typeof n !== "number") return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  let size = n;
  while (size >= 1024 && at < units.length - 1) {
    size /= 1024;
    at += 1;
  }
  return `${at === 0 || size >= 9.95 ? Math.round(size) : size.toFixed(1)} ${units[at]}`;
}

/** A whole number with its separators. */
export function count(n) {
  return typeof n === "number" ? formatter("count", (lang) => new Intl.NumberFormat(lang)).format(n) : "–";
}

function two(n) {
  return String(n).padStart(2, "0");
}
