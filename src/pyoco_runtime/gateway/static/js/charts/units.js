// What a chart counts in: `step(max)` between the marks of its axis, `tick(value)` beside a mark, `format(value)` in
// full.

import { count, duration } from "../lib/format.js";
import { language, t } from "../lib/i18n.js";
import { niceSeconds, niceStep } from "./scale.js";

const MARKS = 4;

export const COUNT = {
  step: (max) => niceStep(max, MARKS, true),
  tick: count,
  format: count,
};

export const SECONDS = {
  step: (max) => niceSeconds(max, MARKS),
  tick: roundTime,
  format: (sec) => (sec === 0 ? t("ui.shell.dur_s", { n: 0 }) : duration(sec)),
};

function roundTime(sec) {
  if (sec === 0) return "0";
  if (sec < 1) return written(sec * 1000, "millisecond");
  if (sec < 60) return t("ui.shell.dur_s", { n: sec });
  if (sec < 3600) return written(sec / 60, "minute");
  return written(sec / 3600, "hour");
}

function written(value, unit) {
  const short = { style: "unit", unit, unitDisplay: "short", maximumFractionDigits: 1 };
  return new Intl.NumberFormat(language(), short).format(value);
}
