// What the list shows: by status with counts, by flow, tag and run id. All of it is in the address.
import { count } from "../lib/format.js";
import { t } from "../lib/i18n.js";
import { Badge } from "../lib/parts.js";
import { go, href } from "../lib/router.js";
import { RUN_STATUSES } from "../lib/status.js";
import { html, useEffect, useRef } from "../lib/ui.js";

const TYPING_MS = 300;

/** `query` is the address's; `counts` {status: n} or null; `flows` and `tags` are offered for completion. */
export function FilterBar({ query, counts, flows, tags }) {
  const change = (field) => (value) => go("/runs", { ...query, after: null, [field]: value }, { replace: true });
  const isFiltered = query.flow || query.tag || query.q || query.status;
  return html`<div class="filters">
    <${StatusTabs} query=${query} counts=${counts} />
    <div class="filter-fields">
      <${Field} name="flow" value=${query.flow} offers=${flows} onValue=${change("flow")} />
      <${Field} name="tag" value=${query.tag} offers=${tags} onValue=${change("tag")} />
      <${Field} name="q" value=${query.q} isLive onValue=${change("q")} />
      ${isFiltered && html`<a class="button" href=${href("/runs")}>${t("ui.runs.clear")}</a>`}
    </div>
  </div>`;
}

function StatusTabs({ query, counts }) {
  const all = counts && Object.values(counts).reduce((sum, n) => sum + n, 0);
  const tab = (status, word, n) => html`<li key=${status}><a class="tab" href=${href("/runs", { ...query, after: null, status })}
    aria-current=${(query.status ?? "") === status ? "true" : null}>${word}<span class="tab-count num">${
      counts ? count(n) : "–"}</span></a></li>`;
  return html`<ul class="tabs" aria-label=${t("ui.runs.by_status")}>
    ${tab("", t("ui.runs.all"), all)}
    ${RUN_STATUSES.map((status) => tab(status, html`<${Badge} status=${status} />`, counts?.[status] ?? 0))}
  </ul>`;
}

/** A field of the filter. `isLive`: it filters while one types; the others when one is done, as they must match whole. */
function Field({ name, value = "", offers = [], isLive = false, onValue }) {
  const input = useRef(null);
  const timer = useRef(null);
  const told = useRef(null);
  useEffect(() => {
    if (value !== told.current) input.current.value = value; // from outside; what was typed here stays as it was typed
    told.current = value;
    return () => clearTimeout(timer.current);
  }, [value]);
  const tell = (text) => {
    told.current = text.trim();
    onValue(told.current);
  };
  const typed = (event) => {
    const text = event.target.value;
    clearTimeout(timer.current);
    const isWhole = text === "" || offers.includes(text);
    if (isLive || isWhole) timer.current = setTimeout(() => tell(text), isLive ? TYPING_MS : 0);
  };
  const done = (event) => {
    clearTimeout(timer.current);
    tell(event.target.value);
  };
  const list = offers.length > 0 ? `offers-${name}` : null;
  return html`<div class="field">
    <label for=${`filter-${name}`}>${t(`ui.runs.field.${name}`)}</label>
    <input id=${`filter-${name}`} ref=${input} type="search" autocomplete="off" spellcheck=${false} list=${list}
      placeholder=${t(`ui.runs.hint.${name}`)} onInput=${typed} onChange=${done} />
    ${list && html`<datalist id=${list}>${offers.map((each) => html`<option key=${each} value=${each}></option>`)}</datalist>`}
  </div>`;
}
