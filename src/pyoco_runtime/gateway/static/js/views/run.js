// One run.
import { useNow } from "../lib/clock.js";
import config from "../lib/config.js";
import { Since } from "../lib/format.js";
import { has, t } from "../lib/i18n.js";
import { Badge, Copy, Empty, Loading, Panel, Problem } from "../lib/parts.js";
import { go, href } from "../lib/router.js";
import { isTerminal, reading } from "../lib/status.js";
import { html, useEffect, useRef, useState } from "../lib/ui.js";
import { Facts } from "../run/facts.js";
import { useRun } from "../run/follow.js";
import { Gantt } from "../run/gantt.js";
import { Graph, taskWord } from "../run/graph.js";
import { TaskDetail, Text, json } from "../run/task_detail.js";
import { firstChoice, tasksOf } from "../run/tasks.js";
import { CancelDialog } from "../runs/cancel.js";
import { lastList } from "../runs/last_list.js";

export default function Run({ route }) {
  const runId = route.parts[1];
  const { run, graph, waiting, error, take } = useRun(runId);
  const isByHand = useRef(false);
  useEffect(() => {
    if (run) document.title = `${run.flow_name} · pyoco-runtime`;
  }, [run?.flow_name]);
  if (error && !run) return html`<${Missing} runId=${runId} error=${error} />`;
  if (!run) return html`<${Loading} />`;
  const tasks = tasksOf(run, graph);
  const asked = "task" in route.query ? route.query.task : firstChoice(tasks);
  const chosen = tasks.find((task) => task.name === asked) ?? null;
  const choose = (name) => {
    isByHand.current = true;
    go(route.path, { ...route.query, task: name }, { replace: true });
  };
  const parts = { run, graph, tasks, chosen: chosen?.name ?? null, onChoose: choose };
  return html`
    ${error && html`<${Problem} error=${error} />`}
    <${Head} run=${run} waiting=${waiting} onSnapshot=${take} />
    <${Panel} title=${t("ui.run.graph")} class="graph-panel"><${Shape} ...${parts} /><//>
    <div class="run-grid">
      <div class="run-column">
        <${Panel} title=${t("ui.run.timeline")} class="timeline-panel"><${Gantt} ...${parts} /><//>
        <${Panel} class="params-panel"><${Text} name="params" text=${json(run.params ?? {})} /><//>
      </div>
      <div class="run-column">
        ${chosen && html`<${Panel} class="detail-panel"><${TaskDetail} key=${chosen.name} task=${chosen} isByHand=${isByHand.current}
          onClose=${() => closed(route)} /><//>`}
        <${Panel} title=${t("ui.run.facts")} class="facts-panel"><${Facts} run=${run} /><//>
      </div>
    </div>`;
}

/** "task=" with nothing in it: the reader wants none, not even the one that failed. */
function closed(route) {
  history.replaceState(null, "", `${href(route.path)}?task=`);
  window.dispatchEvent(new HashChangeEvent("hashchange"));
}

function Head({ run, waiting, onSnapshot }) {
  const [asking, setAsking] = useState(false);
  const wasOpen = useRef(!isTerminal(run.status)).current; // then its end takes no line away: the graph must not jump
  const canStop = !isTerminal(run.status) && run.status !== "CANCELLING";
  return html`<header class="run-head">
      <div class="row spread">
        <div class="run-title">
          <p class="crumb"><a href=${href("/runs", lastList.read())}>← ${t("ui.run.back")}</a></p>
          <div class="row"><h1>${run.flow_name}</h1><${Status} run=${run} /></div>
          <p class="run-id"><code>${run.run_id}</code><${Copy} text=${run.run_id} label=${t("ui.run.run_id")} /></p>
        </div>
        ${canStop && html`<button type="button" onClick=${() => setAsking(true)}>${t("ui.shared.action.cancel")}</button>`}
      </div>
      <div role="status" class=${wasOpen ? "waiting-place" : ""}>${waiting && html`<${Waiting} waiting=${waiting} />`}</div>
      ${run.error && html`<div class="problem"><${Text} name="error" text=${run.error} isBad /></div>`}
      ${run.task_records_truncated && html`<p class="notice">${t("ui.run.truncated")}</p>`}
    </header>
    <${CancelDialog} run=${asking ? run : null} onDone=${onSnapshot} onClose=${() => setAsking(false)} />`;
}

function Status({ run }) {
  return isTerminal(run.status) ? html`<${Badge} status=${run.status} />` : html`<${LiveStatus} run=${run} />`;
}

function LiveStatus({ run }) {
  return html`<${Badge} status=${reading(run, useNow(), config.stale_after_sec)} />`;
}

/** In one sentence what it waits for, and for how long already. */
function Waiting({ waiting }) {
  const key = `ui.shared.waiting.${waiting.code}`;
  if (!has(key)) return null;
  const isBad = ["no_worker", "no_flow", "lost_worker"].includes(waiting.code);
  return html`<p class="waiting" data-bad=${isBad}>${t(key, waiting)}${waiting.since != null && html` <span class="num faint">(<${Since}
    at=${waiting.since} />)</span>`}</p>`;
}

/** The graph; without one (it has not started, or another kind of worker has it) the tasks in their order. */
function Shape({ run, graph, tasks, chosen, onChoose }) {
  if (graph?.nodes?.length > 0) return html`<${Graph} graph=${graph} tasks=${tasks} chosen=${chosen} onChoose=${onChoose} />`;
  if (tasks.length === 0) {
    return html`<${Empty} title=${t(isTerminal(run.status) ? "ui.run.no_tasks" : "ui.run.no_tasks_yet")} />`;
  }
  return html`<ol class="task-list">${tasks.map((task) => html`<li key=${task.name}><button type="button" class="task-item"
    data-status=${task.state} aria-pressed=${chosen === task.name} onClick=${() => onChoose(task.name)}>
    <span class="cut">${task.name}</span><span class="node-word">${taskWord(task.state)}</span></button></li>`)}</ol>`;
}

function Missing({ runId, error }) {
  if (error.status !== 404) return html`<${Problem} error=${error} />`;
  return html`<h1 class="visually-hidden">${t("ui.run.not_found")}</h1><${Panel}><${Empty} title=${t("ui.run.not_found")}><p><code>${runId}</code></p>
    <p>${t("ui.run.not_found_why")}</p><p><a href=${href("/runs")}>${t("ui.run.back")}</a></p><//><//>`;
}
