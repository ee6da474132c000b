// Replay a dead letter, or drop it.

import { send } from "../lib/api.js";
import { t } from "../lib/i18n.js";
import { Confirm, toast } from "../lib/parts.js";
import { html, useState } from "../lib/ui.js";
import { RunLink } from "../live/run_link.js";
import { said } from "../live/said.js";

const GONE = "ERR-PYOCO-0036";

/** `replayed`: the ids of the runs that were made from it here; `onReplayed(runId)`, `onGone()`. */
export function LetterActions({ letter, replayed, onReplayed, onDrop, onGone }) {
  return html`
    <div class="letter-actions">
      <${ReplayButton} letter=${letter} onReplayed=${onReplayed} onGone=${onGone} />
      <button type="button" class="quiet" aria-label=${t("ui.letters.drop_label", { seq: letter.seq })}
        onClick=${() => onDrop(letter)}>${t("ui.letters.drop")}</button>
      ${replayed?.map((run) => html`<${Replayed} key=${run} run=${run} />`)}
    </div>
  `;
}

function Replayed({ run }) {
  return html`<p class="replayed" role="status">
    ${t("ui.letters.replayed_as")}${" "}<${RunLink} run=${run} />
  </p>`;
}

function ReplayButton({ letter, onReplayed, onGone }) {
  const [busy, setBusy] = useState(false);
  const { seq } = letter;
  const replay = async () => {
    setBusy(true);
    try {
      const { run_id: run } = await send("POST", `/dlq/${seq}/replay`);
      onReplayed(run);
      toast(t("ui.letters.replay_done"));
    } catch (error) {
      if (error.errId === GONE) onGone();
      toast(t("ui.letters.replay_failed", { seq, problem: said(error) }));
    } finally {
      setBusy(false);
    }
  };
  return html`<button type="button" disabled=${busy || !letter.replayable} onClick=${replay}
    title=${letter.replayable ? null : t("ui.letters.not_replayable")}
    aria-label=${t("ui.letters.replay_label", { seq })}>${t("ui.letters.replay")}</button>`;
}

/** The question before one is dropped. */
export function DropQuestion({ letter, onClose, onGone }) {
  const seq = letter?.seq;
  const drop = async () => {
    try {
      await send("DELETE", `/dlq/${seq}`);
      toast(t("ui.letters.drop_done", { seq }));
    } catch (error) {
      if (error.errId !== GONE) throw error; // the dialog shows it
      toast(t("ui.letters.drop_gone", { seq }));
    }
    onGone(seq);
  };
  return html`
    <${Confirm} open=${letter !== null} title=${t("ui.letters.drop_title")} confirm=${t("ui.letters.drop")}
      onConfirm=${drop} onClose=${onClose}>
      <p>${letter && t("ui.letters.drop_text", { seq })}</p>
    <//>
  `;
}
