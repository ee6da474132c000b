// The scale of the timeline: pure.

const STEPS = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, // seconds
  60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400, 172800, 604800, // up to a week
];

/** {start, end, at(time) -> 0..1, ticks: [seconds after start]} for a run and its tasks. */
export function scaleOf(run, tasks, now, most = 5) {
  const times = tasks.flatMap(({ record }) => [record?.started_at, record?.ended_at]);
  const known = [run.start_time, run.end_time, ...times].filter((each) => typeof each === "number");
  if (known.length === 0) return null;
  const start = Math.min(...known);
  const isOpen = run.end_time == null;
  const end = Math.max(start + 0.001, ...known, isOpen ? roundUp(now - start) + start : start);
  const length = end - start;
  const step = STEPS.find((each) => length / each <= most) ?? STEPS.at(-1) * Math.ceil(length / STEPS.at(-1) / most);
  const ticks = [];
  for (let n = 0; n * step <= end - start + 1e-9; n += 1) ticks.push(n * step);
  return { start, end, at: (time) => Math.min(1, Math.max(0, (time - start) / (end - start))), ticks };
}

/** While a run is going on its scale grows in steps, so that the bars do not creep all the time. */
function roundUp(seconds) {
  const step = STEPS.find((each) => each >= seconds / 4) ?? STEPS.at(-1);
  return Math.ceil(Math.max(seconds, 0.001) / step) * step;
}
