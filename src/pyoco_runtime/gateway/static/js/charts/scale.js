// Numbers -> places on a drawing. Pure: no page, no texts.

const MANTISSAS = [1, 2, 2.5, 5, 10];
const STEPS_SEC = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];

/** A round step so that about `count` of them reach `max`. With `whole` it is 1 at least: half a run is none. */
export function niceStep(max, count, whole = false) {
  const rough = max / count;
  if (!(rough > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * MANTISSAS.find((mantissa) => mantissa * power >= rough * (1 - 1e-9));
  return whole ? Math.max(1, Math.ceil(step)) : step;
}

/** As niceStep, for seconds: above a minute people count in 60s. */
export function niceSeconds(max, count) {
  const rough = max / count;
  if (rough <= 1) return niceStep(max, count);
  return STEPS_SEC.find((step) => step >= rough * (1 - 1e-9)) ?? niceStep(max / 86400, count, true) * 86400;
}

/** 0, step, 2 step, ... up to the first that reaches `max`. */
export function ticks(max, step) {
  const last = Math.max(1, Math.ceil(max / step - 1e-9));
  return Array.from({ length: last + 1 }, (_, i) => i * step);
}

/** A straight way from [d0, d1] to [r0, r1]. */
export function linear(d0, d1, r0, r1) {
  const slope = d1 === d0 ? 0 : (r1 - r0) / (d1 - d0);
  return (value) => r0 + (value - d0) * slope;
}

/** The times within [from, to] that lie on a round quarter of an hour (or `stepSec`) of the viewer's clock. */
export function clockTicks(from, to, stepSec) {
  const offset = new Date(from * 1000).getTimezoneOffset() * 60;
  const first = Math.ceil((from - offset) / stepSec) * stepSec + offset;
  const found = [];
  for (let at = first; at <= to; at += stepSec) found.push(at);
  return found;
}

/** The path of a line through the points; where a value is null the line breaks. */
export function linePath(points) {
  let path = "";
  let isOpen = false;
  for (const [x, y] of points) {
    if (y === null) {
      isOpen = false;
      continue;
    }
    path += `${isOpen ? "L" : "M"}${round(x)},${round(y)}`;
    isOpen = true;
  }
  return path;
}

/** The path of the area between the upper and the lower line; both have the same x and no gaps. */
export function areaPath(upper, lower) {
  const there = upper.map(([x, y]) => `${round(x)},${round(y)}`);
  const back = lower.map(([x, y]) => `${round(x)},${round(y)}`).reverse();
  return there.length ? `M${there.join("L")}L${back.join("L")}Z` : "";
}

/** The points that have neither neighbour: a line cannot show them. */
export function lonePoints(points) {
  const empty = (i) => points[i] === undefined || points[i][1] === null;
  return points.filter((point, i) => point[1] !== null && empty(i - 1) && empty(i + 1));
}

function round(value) {
  return Math.round(value * 10) / 10;
}
