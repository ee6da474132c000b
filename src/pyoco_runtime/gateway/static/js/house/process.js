// One process: who it is, how it is, and its tree.

import { Since, Time } from "../lib/format.js";
import { t } from "../lib/i18n.js";
import { html } from "../lib/ui.js";
import { StateBadge } from "../live/state_badge.js";
import { steady } from "../live/steady.js";
import { Actor } from "./actor.js";
import { isWell, troubled, walk } from "./health.js";

/** `onRestart({process, actor})` asks whether to restart it. */
export const Process = steady(({ report, onlyTrouble, onRestart }) => {
  const tree = onlyTrouble ? troubled(report.tree) : report.tree;
  const ask = (actor) => onRestart({ process: report.process, actor });
  return html`
    <div class="row spread process-head">
      <${Facts} report=${report} />
      <${Verdict} report=${report} />
    </div>
    ${tree === null
      ? html`<p class="faint">${t("ui.house.no_trouble")}</p>`
      : html`
          <div class="tree-box">
            <${Heads} />
            <ul class="tree" aria-label=${t("ui.house.process", { name: report.process })}>
              <${Actor} actor=${tree} onRestart=${ask} isRoot=${true} />
            </ul>
          </div>
        `}
  `;
});

function Verdict({ report }) {
  const actors = walk(report.tree);
  const bad = actors.filter((actor) => !isWell(actor)).length;
  const restarts = actors.reduce((sum, actor) => sum + actor.restarts, 0);
  return html`
    <div class="row">
      ${bad
        ? html`<${StateBadge} status="error">${t("ui.house.unwell", { bad, count: actors.length })}<//>`
        : html`<${StateBadge} status="ok">${t("ui.house.well", { count: actors.length })}<//>`}
      ${restarts > 0 && html`<${StateBadge} status="backoff">${t("ui.house.crashes", { count: restarts })}<//>`}
    </div>
  `;
}

function Facts({ report }) {
  const facts = [
    ["role", report.role],
    ["host", report.host],
    ["pid", String(report.pid)],
    ["version", report.version],
  ];
  return html`
    <dl class="facts">
      ${facts.map(([name, value]) => html`<div key=${name}><dt>${t(`ui.house.${name}`)}</dt><dd>${value}</dd></div>`)}
      <div>
        <dt>${t("ui.house.started")}</dt>
        <dd><${Time} at=${report.started_at} /> (<${Since} at=${report.started_at} />)</dd>
      </div>
    </dl>
  `;
}

/** For the eye only: each value has its name beside it for those who do not see the columns. */
function Heads() {
  return html`
    <div class="actor-row tree-heads" aria-hidden="true">
      <div>${t("ui.house.actor")}</div>
      <div>${t("ui.house.state")}</div>
      <div class="actor-number">${t("ui.house.restarts")}</div>
      <div class="actor-number" title=${t("ui.house.mailbox_hint")}>${t("ui.house.mailbox")}</div>
      <div></div>
    </div>
  `;
}
