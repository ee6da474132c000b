// How a chart writes a time and a value.

import { language } from "../lib/i18n.js";

/** The time of day in the viewer's zone, as short as an axis needs it: "14:05". */
export function clock(epochSec) {
  const short = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  return new Date(epochSec * 1000).toLocaleTimeString(language(), short);
}

/** A value with its unit; a dash where nothing was measured. */
export function valueText(value, unit) {
  return value === null || value === undefined ? "–" : unit.format(value);
}
