// Who uploaded or deleted which wheel.

import { Time, bytes } from "../lib/format.js";
import { t } from "../lib/i18n.js";
import { Empty, Loading, Problem, useLoad } from "../lib/parts.js";
import { html, useEffect, useState } from "../lib/ui.js";
import { Choices } from "../live/choices.js";
import { WheelTags } from "./wheel_tags.js";

const FIRST = 20;
const MOST = 500; // what the gateway gives at most

/** `round` changes when there may be something new. */
export function History({ query, round }) {
  const [limit, setLimit] = useState(FIRST);
  const wanted = new URLSearchParams({ limit, ...(query.action ? { action: query.action } : {}) });
  const { data, error, reload } = useLoad(`/wheels/history?${wanted}`);
  useEffect(() => {
    if (round > 0) reload();
  }, [round]);
  const choices = ["", "upload", "delete"].map((value) => ({ value, text: t(`ui.wheels.filter_${value || "all"}`) }));
  return html`
    <div class="list-head">
      <${Choices} label=${t("ui.wheels.filter")} path="/wheels" query=${query} name="action" choices=${choices} />
    </div>
    ${error && html`<${Problem} error=${error} onRetry=${reload} />`}
    ${data === null && !error && html`<${Loading} />`}
    ${data?.length === 0 && html`<${Empty} title=${t("ui.wheels.history_empty")} />`}
    ${data?.length > 0 && html`<${Events} events=${data} />`}
    ${data?.length >= limit &&
    limit < MOST &&
    html`<button type="button" onClick=${() => setLimit(Math.min(MOST, limit * 5))}>${t("ui.wheels.more")}</button>`}
  `;
}

function Events({ events }) {
  const heads = ["when", "action", "name", "size", "tags", "who"].map((name) => t(`ui.wheels.${name}`));
  return html`
    <table class="cards">
      <thead>
        <tr>
          ${heads.map((head) => html`<th key=${head} scope="col">${head}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${events.map((event) => html`<${Event} key=${event.event_id} event=${event} heads=${heads} />`)}
      </tbody>
    </table>
  `;
}

function Event({ event, heads }) {
  return html`
    <tr>
      <td data-label=${heads[0]} class="num nowrap"><${Time} at=${event.occurred_at} /></td>
      <td data-label=${heads[1]} class="nowrap">${t(`ui.wheels.action_${event.action}`)}</td>
      <td data-label=${heads[2]} class="mono">${event.wheel_name}</td>
      <td data-label=${heads[3]} class="num nowrap">${bytes(event.size_bytes)}</td>
      <td data-label=${heads[4]}><${WheelTags} tags=${event.tags} /></td>
      <td data-label=${heads[5]}><${Who} event=${event} /></td>
    </tr>
  `;
}

function Who({ event }) {
  const { tenant_id: tenant, api_key_id: key } = event.actor;
  const where = event.source.x_forwarded_for ?? event.source.x_real_ip ?? event.source.remote_addr;
  return html`
    <div>
      ${key && html`<span>${t("ui.wheels.who_key", { key, tenant })}</span>${" "}`}
      <span class="faint" title=${event.source.user_agent}>${where ?? (key ? "" : t("ui.wheels.unknown"))}</span>
    </div>
  `;
}
