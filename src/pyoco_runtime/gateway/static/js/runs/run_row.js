// One run of the list.
import config from "../lib/config.js";
import { useNow } from "../lib/clock.js";
import { Time, duration, ticking } from "../lib/format.js";
import { t } from "../lib/i18n.js";
import { Badge } from "../lib/parts.js";
import { href } from "../lib/router.js";
import { elapsed, isTerminal, reading } from "../lib/status.js";
import { Component, html } from "../lib/ui.js";

/** Drawn anew only if the run has changed: a stream of other runs costs a row nothing. */
export class RunRow extends Component {
  shouldComponentUpdate(next) {
    return next.run !== this.props.run || next.index !== this.props.index;
  }

  render({ run, index, onCancel }) {
    return html`<tr class=${run.isGone ? "is-gone" : ""} aria-rowindex=${index + 2} data-run=${run.run_id}
      title=${run.isGone ? t("ui.runs.is_gone") : null}>
      <td class="c-status"><${Live} run=${run} what=${Status} /></td>
      <td class="c-flow"><a class="cut" href=${href(`/runs/${encodeURIComponent(run.run_id)}`)} title=${run.flow_name}>${
        run.flow_name}</a><code class="cut faint" title=${run.run_id}>${run.run_id.slice(0, 8)}</code></td>
      <td class="c-tag" data-label=${t("ui.runs.col.tag")}><span class="cut" title=${run.tag}>${run.tag ?? "–"}</span></td>
      <td class="c-worker" data-label=${t("ui.runs.col.worker")}><span class="cut" title=${run.worker_id}>${run.worker_id ?? "–"}</span></td>
      <td class="c-started num" data-label=${t("ui.runs.col.started")}><${Time} at=${run.start_time} /></td>
      <td class="c-duration num" data-label=${t("ui.runs.col.duration")}><${Live} run=${run} what=${Elapsed} /></td>
      <td class="c-error"><span class="cut" title=${run.error}>${run.error ?? ""}</span></td>
      <td class="c-action">${!isTerminal(run.status) && run.status !== "CANCELLING" && html`<button type="button" class="quiet"
        aria-label=${t("ui.runs.cancel_run", { flow: run.flow_name, id: run.run_id.slice(0, 8) })}
        onClick=${() => onCancel(run)}>${t("ui.shared.action.cancel")}</button>`}</td>
    </tr>`;
  }
}

/** What depends on the time of day only while the run is not over. */
function Live({ run, what: What }) {
  return isTerminal(run.status) ? html`<${What} run=${run} now=${0} />` : html`<${Ticking} run=${run} what=${What} />`;
}

function Ticking({ run, what: What }) {
  return html`<${What} run=${run} now=${useNow()} />`;
}

function Status({ run, now }) {
  return html`<${Badge} status=${reading(run, now, config.stale_after_sec)} />`;
}

function Elapsed({ run, now }) {
  const seconds = elapsed(run, now);
  return seconds === null ? html`<span class="faint">–</span>` : (isTerminal(run.status) ? duration : ticking)(seconds);
}
