// When each task ran.
import { useNow } from "../lib/clock.js";
import { duration, exact, ticking } from "../lib/format.js";
import { t } from "../lib/i18n.js";
import { Empty } from "../lib/parts.js";
import { isTerminal } from "../lib/status.js";
import { html, useState } from "../lib/ui.js";
import { taskWord } from "./graph.js";
import { taskSeconds } from "./tasks.js";
import { scaleOf } from "./timeline.js";

const MOST = 200; // rows that are drawn at first

export function Gantt(props) {
  return isTerminal(props.run.status) ? html`<${Bars} ...${props} now=${0} />` : html`<${Live} ...${props} />`;
}

function Live(props) {
  return html`<${Bars} ...${props} now=${useNow()} />`;
}

function Bars({ run, tasks, chosen, onChoose, now }) {
  const [isAll, setAll] = useState(false);
  const scale = scaleOf(run, tasks, now);
  const begun = tasks.filter(({ record }) => record?.started_at != null);
  begun.sort((a, b) => a.record.started_at - b.record.started_at);
  if (scale === null || begun.length === 0) {
    const hasRun = tasks.some(({ state }) => state !== "PENDING" && state !== "NOT_RUN");
    return html`<${Empty} title=${t(hasRun ? "ui.run.times_unknown" : "ui.run.no_times")} />`;
  }
  const shown = isAll ? begun : begun.slice(0, MOST);
  return html`<div class="gantt">
    <div class="gantt-axis" aria-hidden="true">${scale.ticks.map((tick) => html`<span key=${tick} class="num"
      style=${{ left: `${scale.at(scale.start + tick) * 100}%` }}>${tick === 0 ? "0" : duration(tick)}</span>`)}</div>
    <ol>${shown.map((task) => html`<${Bar} key=${task.name} task=${task} scale=${scale} now=${now} isChosen=${chosen === task.name}
      onChoose=${onChoose} />`)}</ol>
    ${shown.length < begun.length && html`<button type="button" onClick=${() => setAll(true)}>${
      t("ui.run.all_tasks", { n: begun.length })}</button>`}
  </div>`;
}

function Bar({ task: { name, state, record }, scale, now, isChosen, onChoose }) {
  const from = scale.at(record.started_at);
  const to = scale.at(record.started_at + taskSeconds(record, now));
  const time = (state === "RUNNING" ? ticking : duration)(taskSeconds(record, now));
  const label = `${name}: ${taskWord(state)}, ${time}`;
  return html`<li><button type="button" class="gantt-row" data-status=${state} aria-pressed=${isChosen} aria-label=${label}
    title=${`${label}\n${exact(record.started_at)}`} onClick=${() => onChoose(name)}>
    <span class="gantt-name cut">${name}</span>
    <span class="gantt-track"><span class="gantt-bar" style=${{ left: percent(from), width: percent(to - from) }}></span></span>
    <span class="gantt-time num">${time}</span>
  </button></li>`;
}

function percent(part) {
  return `${Math.max(0, part) * 100}%`;
}
