// Who, when, where: the facts of a run beside its tasks.
import { useNow } from "../lib/clock.js";
import { Ago, Time, bytes, duration, ticking } from "../lib/format.js";
import { t } from "../lib/i18n.js";
import { Badge, Copy } from "../lib/parts.js";
import { href } from "../lib/router.js";
import { elapsed, isTerminal } from "../lib/status.js";
import { html } from "../lib/ui.js";

export function Facts({ run }) {
  const rows = [
    ["submitted", run.submitted_at != null && html`<${Time} at=${run.submitted_at} />`],
    ["submitted_by", submitter(run)],
    ["started", run.start_time != null && html`<${Time} at=${run.start_time} />`],
    ["ended", run.end_time != null && html`<${Time} at=${run.end_time} />`],
    ["duration", run.start_time != null && html`<${Elapsed} run=${run} />`],
    ["tag", run.tag],
    ["tags", otherTags(run)],
    ["worker", run.worker_id && html`<${Worker} run=${run} />`],
    ["heartbeat", !isTerminal(run.status) && run.heartbeat_at != null && run.worker_id && html`<${Ago} at=${run.heartbeat_at} />`],
    ["attempt", run.attempt?.delivery > 1 && t("ui.run.attempt_n", { n: run.attempt.delivery })],
    ["cancelled", run.cancel_requested_at != null && html`<${Cancelled} run=${run} />`],
    ["cancel_reason", run.cancel_reason],
    ["yaml", run.workflow_yaml_sha256 && html`<${Yaml} run=${run} />`],
  ];
  return html`<dl class="run-facts">${rows.filter(([, value]) => value).map(([name, value]) => html`<dt key=${name}>${
    t(`ui.run.fact.${name}`)}</dt><dd key=${`${name}=`}>${value}</dd>`)}</dl>`;
}

function submitter(run) {
  const key = run.submitted_by ?? (run.api_key_id ? `api_key:${run.api_key_id}` : null);
  if (!key) return null;
  return html`<code>${key}</code>${run.tenant_id ? ` · ${t("ui.run.tenant", { tenant: run.tenant_id })}` : ""}`;
}

function otherTags(run) {
  const others = (run.tags ?? []).filter((each) => each !== run.tag);
  return others.length > 0 && html`<span class="row">${others.map((each) => html`<span key=${each} class="chip">${each}</span>`)}</span>`;
}

function Elapsed({ run }) {
  return isTerminal(run.status) ? duration(elapsed(run, 0)) : html`<${Ticking} run=${run} />`;
}

function Ticking({ run }) {
  return html`<span class="num">${ticking(elapsed(run, useNow()))}</span>`;
}

function Worker({ run }) {
  const state = !isTerminal(run.status) && run.worker_state;
  return html`<span class="row"><a href=${href("/workers")}>${run.worker_id}</a>${state && html`<${Badge} status=${state} of="worker" />`}</span>`;
}

function Cancelled({ run }) {
  return html`<${Time} at=${run.cancel_requested_at} />${run.cancel_requested_by ? html` · <code>${run.cancel_requested_by}</code>` : ""}`;
}

function Yaml({ run }) {
  const sha = run.workflow_yaml_sha256;
  return html`<code title=${sha}>${sha.slice(0, 16)}…</code> <${Copy} text=${sha} label="sha256" />
    ${run.workflow_yaml_bytes != null ? bytes(run.workflow_yaml_bytes) : ""}`;
}
