// For whom a wheel is.

import { t } from "../lib/i18n.js";
import { html } from "../lib/ui.js";

export function WheelTags({ tags }) {
  if (!tags?.length) return html`<span class="faint">${t("ui.wheels.all_workers")}</span>`;
  return html`
    <ul class="pills">
      ${tags.map((tag) => html`<li key=${tag} class="pill">${tag}</li>`)}
    </ul>
  `;
}
