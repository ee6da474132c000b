// How an actor crashed last: what, where and when. A fresh one catches the eye.

import { useNow } from "../lib/clock.js";
import { Ago } from "../lib/format.js";
import { t } from "../lib/i18n.js";
import { Copy } from "../lib/parts.js";
import { html } from "../lib/ui.js";

const FRESH_SEC = 60;

export function Crash({ crash }) {
  const isFresh = useNow() - crash.at < FRESH_SEC;
  return html`
    <div class="crash" data-fresh=${isFresh}>
      <p>
        <span class="crash-head">${t("ui.house.last_crash")}${" "}<${Ago} at=${crash.at} /></span>
        ${" "}<b class="mono">${crash.type}</b>${crash.message && html`: <span class="mono">${crash.message}</span>`}
      </p>
      <p class="crash-where mono">
        ${t("ui.house.crash_where", { where: crash.where })}
        <${Copy} text=${`${crash.type}: ${crash.message}\n${crash.where}`} label=${crash.type} />
      </p>
    </div>
  `;
}
