// From the answer of GET /stats to the lines of the charts. Pure: no page, no texts but the names it is given.

const MOST_LINES = 6; // more cannot be told apart

/** The start of each bucket, in unix seconds. */
export function timesOf(stats) {
  return Array.from({ length: stats.buckets }, (_, i) => stats.start + i * stats.bucket_sec);
}

/** The ended runs, one line for each outcome. `names`: {COMPLETED: "completed", ...}. */
export function endedSeries(stats, names) {
  return Object.entries(names).map(([status, name]) => ({
    key: status,
    name,
    tone: `tone-${status.toLowerCase()}`,
    values: stats.ended[status] ?? Array(stats.buckets).fill(0),
  }));
}

/**
 * One line for each tag, the highest first; what is too much is put together: added up, or its largest with `ofMany`
 * Math.max. `others(count)` names that line.
 */
export function tagSeries(queue, field, ofMany, others) {
  const lines = queue
    .map((one) => ({ key: one.tag, name: one.tag, values: one[field] }))
    .sort((a, b) => peak(b.values) - peak(a.values) || (a.name < b.name ? -1 : 1));
  const few = lines.length <= MOST_LINES ? lines : lines.slice(0, MOST_LINES - 1);
  const rest = lines.slice(few.length);
  if (rest.length) few.push({ key: "", name: others(rest.length), values: merged(rest, ofMany) });
  return few.map((line, i) => ({ ...line, tone: `tone-${i + 1}` }));
}

/** p50 and p95 of one flow. */
export function durationSeries(flow, names) {
  return [
    { key: "p95", name: names.p95, tone: "tone-p95", values: flow.p95_sec },
    { key: "p50", name: names.p50, tone: "tone-p50", values: flow.p50_sec },
  ];
}

/** Whether there is anything but zeros and gaps. */
export function isFlat(series) {
  return series.every((one) => one.values.every((value) => !value));
}

/** Two numbers added up. */
export function sum(a, b) {
  return a + b;
}

function peak(values) {
  return values.reduce((most, value) => Math.max(most, value ?? 0), 0);
}

function merged(lines, ofMany) {
  return lines[0].values.map((_, i) => {
    const known = lines.map((line) => line.values[i]).filter((value) => value !== null && value !== undefined);
    return known.length ? known.reduce((a, b) => ofMany(a, b)) : null;
  });
}
