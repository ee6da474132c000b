// Names, of which there may be many: a few, and the rest on request.

import { t } from "../lib/i18n.js";
import { html } from "../lib/ui.js";

const FEW = 4;

export function FewOf({ names }) {
  if (!names?.length) return html`<span class="faint">${t("ui.workers.no_flows")}</span>`;
  const few = names.length <= FEW + 1 ? names : names.slice(0, FEW);
  const rest = names.slice(few.length);
  return html`
    <ul class="pills">
      ${few.map((name) => html`<li key=${name} class="pill">${name}</li>`)}
    </ul>
    ${rest.length > 0 &&
    html`
      <details class="more">
        <summary>${t("ui.workers.more", { count: rest.length })}</summary>
        <ul class="pills">
          ${rest.map((name) => html`<li key=${name} class="pill">${name}</li>`)}
        </ul>
      </details>
    `}
  `;
}
