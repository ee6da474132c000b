// Cancelling a run, with the question before it.
import { send } from "../lib/api.js";
import { t } from "../lib/i18n.js";
import { Confirm, toast } from "../lib/parts.js";
import { isTerminal } from "../lib/status.js";
import { html, useState } from "../lib/ui.js";

/** Asks about `run` (null: does not ask); `onDone(snapshot)` after the gateway has taken the request. */
export function CancelDialog({ run, onDone, onClose }) {
  const [reason, setReason] = useState("");
  const cancel = async () => {
    const body = reason.trim() ? { reason: reason.trim() } : {};
    const snapshot = await send("POST", `/runs/${encodeURIComponent(run.run_id)}/cancel`, body);
    toast(t(isTerminal(snapshot.status) ? "ui.runs.cancel.was_over" : "ui.runs.cancel.asked", { flow: run.flow_name }));
    setReason("");
    onDone(snapshot);
  };
  return html`<${Confirm} open=${run !== null} title=${t("ui.runs.cancel.title")} confirm=${t("ui.runs.cancel.yes")}
    onConfirm=${cancel} onClose=${onClose}>
    ${run && html`<p><strong>${run.flow_name}</strong> <code>${run.run_id}</code></p>
      <p>${t("ui.runs.cancel.what")}</p>
      <div class="field"><label for="cancel-reason">${t("ui.runs.cancel.reason")}</label>
        <input id="cancel-reason" maxlength="500" value=${reason} onInput=${(event) => setReason(event.target.value)} /></div>`}
  <//>`;
}
