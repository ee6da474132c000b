// One small chart: lines, or areas on top of each other, over time. What it shows can be read with the pointer, with
// the arrow keys, and as a table.

import { t } from "../lib/i18n.js";
import { html, useLayoutEffect, useRef, useState } from "../lib/ui.js";
import { ChartTable } from "./chart_table.js";
import { areaPath, clockTicks, linear, linePath, lonePoints, ticks } from "./scale.js";
import { clock, valueText } from "./words.js";

const HEIGHT = 168;
const EDGE = { top: 10, right: 12, bottom: 22, left: 52 };
const FIRST_WIDTH = 480; // until the page has been laid out
const WIDE_LABEL = 54; // px that a time on the axis needs

/**
 * `series`: [{key, name, tone, values}], one value or null for each of `times` (unix seconds).
 * The last of them is the minute that is not over yet. `unit`: see units.js. `stacked` draws areas, otherwise lines.
 */
export function LineChart({ title, times, series, unit, stacked = false }) {
  const box = useRef(null);
  const width = useWidth(box);
  const [at, setAt] = useState(null);
  const shown = at === null ? null : Math.min(at, times.length - 1);
  const drawn = layout({ times, series, unit, stacked, width });
  return html`
    <div class="chart">
      <${Legend} times=${times} series=${series} unit=${unit} at=${shown} />
      <div
        ref=${box}
        class="chart-plot"
        role="slider"
        tabindex="0"
        aria-label=${t("ui.charts.reader", { title })}
        aria-valuemin="0"
        aria-valuemax=${times.length - 1}
        aria-valuenow=${shown ?? times.length - 1}
        aria-valuetext=${spoken(times, series, unit, shown ?? times.length - 1)}
        onKeyDown=${(event) => onKey(event, shown, times.length, setAt)}
        onFocus=${() => setAt((was) => was ?? times.length - 1)}
        onBlur=${() => setAt(null)}
        onPointerMove=${(event) => setAt(nearest(event, width, times.length))}
        onPointerDown=${(event) => setAt(nearest(event, width, times.length))}
        onPointerLeave=${(event) => event.pointerType === "mouse" && setAt(null)}
      >
        <${Drawing} ...${drawn} width=${width} times=${times} unit=${unit} at=${shown} />
      </div>
      <${ChartTable} title=${title} times=${times} series=${series} unit=${unit} />
    </div>
  `;
}

function Legend({ times, series, unit, at }) {
  const index = at ?? times.length - 1;
  return html`
    <div class="chart-readout">
      <span class="chart-when">${whenText(times, index)}</span>
      <ul class="chart-legend">
        ${series.map(
          (one) => html`
            <li key=${one.key}>
              <svg class=${`swatch ${one.tone}`} width="18" height="8" aria-hidden="true">
                <line class="line" x1="0" y1="4" x2="18" y2="4" />
              </svg>
              <span class="chart-name" title=${one.name}>${one.name}</span>
              <b class="chart-value">${valueText(one.values[index], unit)}</b>
            </li>
          `,
        )}
      </ul>
    </div>
  `;
}

function Drawing({ lines, x, y, marks, width, times, unit, at }) {
  const bottom = HEIGHT - EDGE.bottom;
  const many = Math.max(2, Math.floor((width - EDGE.left - EDGE.right) / WIDE_LABEL));
  return html`
    <svg class="chart-svg" width=${width} height=${HEIGHT} viewBox=${`0 0 ${width} ${HEIGHT}`} aria-hidden="true">
      <rect class="unfinished" x=${x(times[times.length - 2])} y=${EDGE.top}
        width=${width - EDGE.right - x(times[times.length - 2])} height=${bottom - EDGE.top} />
      ${marks.map(
        (mark) => html`
          <g key=${mark}>
            <line class="grid" x1=${EDGE.left} x2=${width - EDGE.right} y1=${y(mark)} y2=${y(mark)} />
            <text class="axis" x=${EDGE.left - 8} y=${y(mark) + 4} text-anchor="end">${unit.tick(mark)}</text>
          </g>
        `,
      )}
      ${clockTicks(times[0], times[times.length - 1], clockStep(times, many)).map(
        (when) => html`
          <g key=${when}>
            <line class="grid tick" x1=${x(when)} x2=${x(when)} y1=${bottom} y2=${bottom + 4} />
            <text class="axis" x=${x(when)} y=${HEIGHT - 5} text-anchor="middle">${clock(when)}</text>
          </g>
        `,
      )}
      ${lines.map(
        (line) => html`
          <g key=${line.key} class=${line.tone}>
            ${line.area && html`<path class="area" d=${line.area} />`}
            <path class="line" d=${line.path} />
            ${line.lone.map(([cx, cy]) => html`<circle key=${cx} class="dot" cx=${cx} cy=${cy} r="2" />`)}
            ${at !== null &&
            line.points[at][1] !== null &&
            html`<circle class="dot" cx=${line.points[at][0]} cy=${line.points[at][1]} r="3.5" />`}
          </g>
        `,
      )}
      ${at !== null && html`<line class="cursor" x1=${x(times[at])} x2=${x(times[at])} y1=${EDGE.top} y2=${bottom} />`}
    </svg>
  `;
}

/** Everything that has a place: the scales, the marks of the axis and the lines. */
function layout({ times, series, unit, stacked, width }) {
  const tops = stacked ? stack(series) : series.map((one) => one.values);
  const max = Math.max(0, ...tops.flat().map((value) => value ?? 0));
  const marks = ticks(max, unit.step(max));
  const x = linear(times[0], times[times.length - 1], EDGE.left, width - EDGE.right);
  const y = linear(0, marks[marks.length - 1], HEIGHT - EDGE.bottom, EDGE.top);
  const place = (values) => values.map((value, i) => [x(times[i]), value === null ? null : y(value)]);
  const floor = times.map((time) => [x(time), y(0)]);
  const points = tops.map(place);
  const lines = series.map((one, i) => ({
    key: one.key,
    tone: one.tone,
    points: points[i],
    path: linePath(stacked ? whereAny(points[i], one.values) : points[i]),
    lone: stacked ? [] : lonePoints(points[i]),
    area: stacked ? areaPath(points[i], i ? points[i - 1] : floor) : null,
  }));
  return { lines, x, y, marks };
}

/** Of a stacked line only the parts that are something: where it is 0 it would lie on the one below. */
function whereAny(points, values) {
  return points.map(([x, y], i) => [x, values[i - 1] || values[i] || values[i + 1] ? y : null]);
}

function stack(series) {
  const sums = [];
  for (const one of series) {
    const under = sums[sums.length - 1];
    sums.push(one.values.map((value, i) => (value ?? 0) + (under ? under[i] : 0)));
  }
  return sums;
}

function clockStep(times, many) {
  const span = times[times.length - 1] - times[0];
  return [60, 300, 600, 900, 1800, 3600].find((step) => span / step <= many) ?? 3600;
}

function nearest(event, width, count) {
  const inside = event.clientX - event.currentTarget.getBoundingClientRect().left - EDGE.left;
  const share = inside / (width - EDGE.left - EDGE.right);
  return Math.max(0, Math.min(count - 1, Math.round(share * (count - 1))));
}

function onKey(event, at, count, setAt) {
  const now = at ?? count - 1;
  const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -count, End: count };
  if (!(event.key in steps)) return;
  event.preventDefault();
  setAt(Math.max(0, Math.min(count - 1, now + steps[event.key])));
}

function spoken(times, series, unit, index) {
  const values = series.map((one) => `${one.name} ${valueText(one.values[index], unit)}`);
  return [whenText(times, index), ...values].join(", ");
}

function whenText(times, index) {
  const time = clock(times[index]);
  return index === times.length - 1 ? t("ui.charts.so_far", { time }) : time;
}

function useWidth(box) {
  const [width, setWidth] = useState(FIRST_WIDTH);
  useLayoutEffect(() => {
    const measure = () => setWidth(Math.max(200, Math.floor(box.current.clientWidth)));
    measure();
    const watcher = new ResizeObserver(measure);
    watcher.observe(box.current);
    return () => watcher.disconnect();
  }, []);
  return width;
}
