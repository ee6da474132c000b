// The workers: who lives, what they run, what they can run, and which wheels they have.

import { send } from "../lib/api.js";
import { Ago } from "../lib/format.js";
import { has, t } from "../lib/i18n.js";
import { Badge, Copy, Empty, Loading, Panel, Problem, toast } from "../lib/parts.js";
import { go } from "../lib/router.js";
import { html, useMemo, useState } from "../lib/ui.js";
import { Choices } from "../live/choices.js";
import { useFollowed } from "../live/followed.js";
import { RunLink } from "../live/run_link.js";
import { said } from "../live/said.js";
import { StateBadge } from "../live/state_badge.js";
import { steady } from "../live/steady.js";
import { FewOf } from "../workers/few_of.js";
import { WheelSync } from "../workers/wheel_sync.js";

const STREAM = "/workers/watch?scope=all&include_hidden=true&limit=500"; // all of it: the counts need them too
const STATES = ["RUNNING", "IDLE", "DISCONNECTED", "STOPPED_GRACEFUL"];
const HINTS = {
  RUNNING: "ui.workers.running_hint",
  IDLE: "ui.workers.idle_hint",
  DISCONNECTED: "ui.workers.disconnected_hint",
  STOPPED_GRACEFUL: "ui.workers.stopped_hint",
};

export default function Workers({ route }) {
  return html`
    <h1>${t("ui.workers.title")}</h1>
    <${Panel}><${WorkerList} query=${route.query} /><//>
  `;
}

function WorkerList({ query }) {
  const { records, error } = useFollowed(STREAM, { whole: "workers", one: "worker", id: "worker_id" });
  if (error) return html`<${Problem} error=${error} />`;
  if (records === null) return html`<${Loading} />`;
  const all = [...records.values()];
  const listed = all.filter((worker) => query.hidden || !worker.hidden);
  const shown = listed.filter((worker) => !query.state || worker.state === query.state).sort(inOrder);
  return html`
    <div class="row spread list-head">
      <${Choices} label=${t("ui.workers.filter")} path="/workers" query=${query} name="state"
        choices=${choices(listed)} />
      <${ShowHidden} query=${query} />
    </div>
    ${shown.length ? html`<${WorkerTable} workers=${shown} />` : html`<${NoWorkers} all=${all} listed=${listed} />`}
  `;
}

function choices(listed) {
  const number = (state) => listed.filter((worker) => worker.state === state).length;
  return [
    { value: "", text: t("ui.workers.all"), count: listed.length },
    ...STATES.map((state) => ({ value: state, text: word(state), count: number(state) })),
  ];
}

/** A state that we do not know stays as it is. */
function word(state) {
  const key = `ui.shared.worker.${state}`;
  return has(key) ? t(key) : state;
}

/** The lively ones first, then by name: a row stays where it is as long as its state does. */
function inOrder(a, b) {
  const rank = (worker) => Math.max(1, STATES.indexOf(worker.state)); // running and idle change places all day
  return rank(a) - rank(b) || (a.worker_id < b.worker_id ? -1 : 1);
}

function ShowHidden({ query }) {
  const change = (event) => go("/workers", { ...query, hidden: event.target.checked ? "1" : "" });
  return html`<label class="check"
    ><input type="checkbox" checked=${Boolean(query.hidden)} onChange=${change} />${t("ui.workers.show_hidden")}</label
  >`;
}

function NoWorkers({ all, listed }) {
  if (listed.length) return html`<${Empty} title=${t("ui.workers.empty_filter")} />`;
  if (all.length) return html`<${Empty} title=${t("ui.workers.empty_hidden")} />`;
  return html`<${Empty} title=${t("ui.workers.empty")}><code>${t("ui.workers.empty_hint")}</code><//>`;
}

function WorkerTable({ workers }) {
  const heads = useMemo(headings, []);
  return html`
    <table class="cards workers">
      <thead>
        <tr>
          ${heads.map((head) => html`<th key=${head} scope="col">${head}</th>`)}
          <th scope="col"><span class="visually-hidden">${t("ui.workers.actions")}</span></th>
        </tr>
      </thead>
      <tbody>
        ${workers.map((worker) => html`<${WorkerRow} key=${worker.worker_id} worker=${worker} heads=${heads} />`)}
      </tbody>
    </table>
  `;
}

function headings() {
  return ["worker", "state", "runs", "tags", "flows", "wheels", "last_run"].map((name) => t(`ui.workers.${name}`));
}

const WorkerRow = steady(({ worker, heads }) => {
  return html`
    <tr data-hidden=${worker.hidden}>
      <th scope="row" class="card-title">
        <span class="mono">${worker.worker_id}</span>
        <${Copy} text=${worker.worker_id} label=${worker.worker_id} />
        ${worker.hidden && html`<span class="pill">${t("ui.workers.hidden")}</span>`}
      </th>
      <td data-label=${heads[1]}><${State} worker=${worker} /></td>
      <td data-label=${heads[2]}><${RunsNow} worker=${worker} /></td>
      <td data-label=${heads[3]}><${FewOf} names=${worker.tags} /></td>
      <td data-label=${heads[4]}><${Flows} flows=${worker.flows} /></td>
      <td data-label=${heads[5]}><${WheelSync} sync=${worker.wheel_sync} /></td>
      <td data-label=${heads[6]}><${LastRun} worker=${worker} /></td>
      <td class="card-actions"><${HideButton} worker=${worker} /></td>
    </tr>
  `;
});

function State({ worker }) {
  const isStopped = worker.state === "STOPPED_GRACEFUL";
  const hint = HINTS[worker.state];
  return html`
    <div>
      <${StateBadge} status=${worker.state} title=${hint && t(hint)}>${word(worker.state)}<//>
      <p class="under num">
        <span class="visually-hidden">${isStopped ? t("ui.workers.since") : t("ui.workers.seen")}${" "}</span>
        <${Ago} at=${isStopped ? (worker.stopped_at ?? worker.last_seen_at) : worker.last_seen_at} />
      </p>
      ${isStopped &&
      worker.stop_reason &&
      html`<p class="under">${t("ui.workers.reason", { reason: worker.stop_reason })}</p>`}
    </div>
  `;
}

function RunsNow({ worker }) {
  const isActive = worker.state === "RUNNING" || worker.state === "IDLE";
  const runs = worker.current_run_ids ?? [worker.current_run_id].filter(Boolean);
  if (runs.length === 0) return html`<span class="faint">${isActive ? t("ui.workers.no_runs") : "–"}</span>`;
  return html`
    <ul class="plain">
      ${runs.map((run) => html`<li key=${run}><${RunLink} run=${run} /></li>`)}
    </ul>
    ${worker.concurrency &&
    html`<p class="under">${t("ui.workers.of", { count: runs.length, most: worker.concurrency })}</p>`}
  `;
}

function Flows({ flows }) {
  if (!flows) return html`<span class="faint" title=${t("ui.workers.any_hint")}>${t("ui.workers.any")}</span>`;
  return html`<${FewOf} names=${flows} />`;
}

function LastRun({ worker }) {
  if (!worker.last_run_id) return html`<span class="faint">–</span>`;
  return html`
    <div>
      <${RunLink} run=${worker.last_run_id} />${" "}
      ${worker.last_run_status && html`<${Badge} status=${worker.last_run_status} />`}
      ${worker.last_run_finished_at && html`<p class="under num"><${Ago} at=${worker.last_run_finished_at} /></p>`}
    </div>
  `;
}

function HideButton({ worker }) {
  const [busy, setBusy] = useState(false);
  const name = worker.worker_id;
  const wanted = !worker.hidden;
  const change = async () => {
    setBusy(true);
    try {
      await send("PATCH", `/workers/${encodeURIComponent(name)}`, { hidden: wanted });
      toast(t(wanted ? "ui.workers.hide_done" : "ui.workers.unhide_done", { worker: name }));
    } catch (error) {
      toast(t("ui.workers.failed", { worker: name, problem: said(error) }));
    } finally {
      setBusy(false);
    }
  };
  const label = t(wanted ? "ui.workers.hide_label" : "ui.workers.unhide_label", { worker: name });
  return html`<button type="button" class="quiet" disabled=${busy} aria-label=${label} onClick=${change}>
    ${t(wanted ? "ui.workers.hide" : "ui.workers.unhide")}
  </button>`;
}
