// How a worker stands with the wheels of the store: the result, the last error, what is installed.

import { Ago } from "../lib/format.js";
import { t } from "../lib/i18n.js";
import { html } from "../lib/ui.js";
import { StateBadge } from "../live/state_badge.js";

const SHORT = 90;
const WORDS = { idle: "ui.workers.sync_idle", ok: "ui.workers.sync_ok", error: "ui.workers.sync_error" };

export function WheelSync({ sync }) {
  if (!sync?.enabled) return html`<span class="faint">${t("ui.workers.sync_off")}</span>`;
  const word = WORDS[sync.last_result];
  return html`
    <div>
      <${StateBadge} status=${sync.last_result}>${word ? t(word) : sync.last_result}<//>
      ${sync.last_attempt_at && html`<p class="under num"><${Ago} at=${sync.last_attempt_at} /></p>`}
      ${sync.last_error && html`<${LastError} text=${sync.last_error} />`}
      <${Wheels} sync=${sync} />
    </div>
  `;
}

/** pip says much; its first words tell the most. */
function LastError({ text }) {
  if (text.length <= SHORT) return html`<p class="sync-error">${text}</p>`;
  return html`
    <details class="sync-error">
      <summary>${text.slice(0, SHORT)}…</summary>
      ${text}
    </details>
  `;
}

function Wheels({ sync }) {
  const installed = sync.installed_wheels ?? [];
  const unfit = sync.skipped_incompatible ?? [];
  if (!installed.length && !unfit.length) return null;
  const parts = [t("ui.workers.sync_installed", { count: installed.length })];
  if (unfit.length) parts.push(t("ui.workers.sync_incompatible", { count: unfit.length }));
  return html`
    <details class="more">
      <summary>${parts.join(" · ")}</summary>
      <ul class="plain">
        ${installed.map((wheel) => html`<li key=${nameOf(wheel)} class="mono">${nameOf(wheel)}</li>`)}
        ${unfit.map((wheel) => html`<li key=${nameOf(wheel)} class="mono unfit">${nameOf(wheel)}</li>`)}
      </ul>
    </details>
  `;
}

/** Other workers than ours may write more, or less, about a wheel. */
function nameOf(wheel) {
  if (typeof wheel === "string") return wheel;
  return wheel.wheel_name ?? wheel.name ?? wheel.file_name ?? JSON.stringify(wheel);
}
