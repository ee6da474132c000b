// The last hour in charts, from what the gateway has in memory.

import { count, duration } from "../lib/format.js";
import { t } from "../lib/i18n.js";
import { Empty, Loading, Panel, Problem, useStream } from "../lib/parts.js";
import { html, useState } from "../lib/ui.js";
import { LineChart } from "../charts/line_chart.js";
import { durationSeries, endedSeries, isFlat, sum, tagSeries, timesOf } from "../charts/series.js";
import { COUNT, SECONDS } from "../charts/units.js";

const FIRST_FLOWS = 6;

export default function Charts() {
  const [stats, setStats] = useState(null);
  const [error, setError] = useState(null);
  useStream("/stats/watch", {
    onEvent: ({ event, data }) => event === "stats" && setStats(data),
    onState: (_, problem) => setError(problem ?? null),
  });
  return html`
    <div>
      <h1>${t("ui.charts.title")}</h1>
      <p class="faint">${t("ui.charts.intro")}</p>
    </div>
    ${error && html`<${Problem} error=${error} />`}
    ${stats === null ? !error && html`<${Loading} />` : html`<${AllCharts} stats=${stats} />`}
  `;
}

function AllCharts({ stats }) {
  return html`
    <div class="chart-grid">
      <${Panel} title=${t("ui.charts.throughput")} class="chart-wide"><${Throughput} stats=${stats} /><//>
      <${Panel} title=${t("ui.charts.depth")}><${Depth} stats=${stats} /><//>
      <${Panel} title=${t("ui.charts.age")}><${Age} stats=${stats} /><//>
    </div>
    <${Panel} title=${t("ui.charts.durations")}><${Durations} stats=${stats} /><//>
  `;
}

function Throughput({ stats }) {
  const series = endedSeries(stats, {
    COMPLETED: t("ui.shared.status.COMPLETED"),
    FAILED: t("ui.shared.status.FAILED"),
    CANCELLED: t("ui.shared.status.CANCELLED"),
  });
  if (isFlat(series)) return html`<${Empty} title=${t("ui.charts.throughput_empty")} />`;
  return html`<${LineChart} title=${t("ui.charts.throughput")} times=${timesOf(stats)} series=${series} unit=${COUNT}
    stacked />`;
}

function Depth({ stats }) {
  const others = (number) => t("ui.charts.others_sum", { count: number });
  return html`<${Queue} stats=${stats} series=${tagSeries(stats.queue, "waiting", sum, others)} unit=${COUNT}
    title=${t("ui.charts.depth")} empty=${t("ui.charts.depth_empty")} />`;
}

function Age({ stats }) {
  const others = (number) => t("ui.charts.others_max", { count: number });
  return html`<${Queue} stats=${stats} series=${tagSeries(stats.queue, "oldest_sec", Math.max, others)} unit=${SECONDS}
    title=${t("ui.charts.age")} empty=${t("ui.charts.age_empty")} />`;
}

function Queue({ stats, series, unit, title, empty }) {
  if (!stats.queue_visible) {
    return html`<${Empty} title=${t("ui.shared.problem.admin")}>${t("ui.charts.queue_hidden")}<//>`;
  }
  const known = stats.ts - stats.since;
  const isYoung = known < stats.buckets * stats.bucket_sec;
  return html`
    ${isFlat(series)
      ? html`<${Empty} title=${empty} />`
      : html`<${LineChart} title=${title} times=${timesOf(stats)} series=${series} unit=${unit} />`}
    ${isYoung && html`<p class="under">${t("ui.charts.catching_up", { since: duration(known) })}</p>`}
  `;
}

function Durations({ stats }) {
  const [isAll, setIsAll] = useState(false);
  const flows = stats.flows.filter((flow) => flow.total > 0);
  if (flows.length === 0) return html`<${Empty} title=${t("ui.charts.durations_empty")} />`;
  const shown = isAll ? flows : flows.slice(0, FIRST_FLOWS);
  return html`
    <p class="faint chart-hint">${t("ui.charts.durations_hint")}</p>
    <div class="flow-grid">
      ${shown.map((flow) => html`<${FlowDurations} key=${flow.flow} flow=${flow} times=${timesOf(stats)} />`)}
    </div>
    ${shown.length < flows.length &&
    html`<button type="button" onClick=${() => setIsAll(true)}>
      ${t("ui.charts.more_flows", { count: flows.length - shown.length })}
    </button>`}
  `;
}

function FlowDurations({ flow, times }) {
  const names = { p50: t("ui.charts.p50"), p95: t("ui.charts.p95") };
  return html`
    <article class="flow">
      <h3 class="cut" title=${flow.flow}>${flow.flow}</h3>
      <p class="under num">
        ${t("ui.charts.of_hour", { count: count(flow.total), p50: duration(flow.p50), p95: duration(flow.p95) })}
      </p>
      <${LineChart} title=${flow.flow} times=${times} series=${durationSeries(flow, names)} unit=${SECONDS} />
    </article>
  `;
}
