// One actor of a supervision tree, and below it what it supervises.

import { Since, count } from "../lib/format.js";
import { t } from "../lib/i18n.js";
import { html, useState } from "../lib/ui.js";
import { RunLink } from "../live/run_link.js";
import { StateBadge } from "../live/state_badge.js";
import { Crash } from "./crash.js";
import { stateWord, tone } from "./health.js";

/** `onRestart(actor)` asks whether to restart it; the root is the process itself and has no button. */
export function Actor({ actor, onRestart, isRoot = false }) {
  const [isOpen, setIsOpen] = useState(true);
  return html`
    <li class="actor" data-tone=${tone(actor.state)}>
      <div class="actor-row">
        <${Name} actor=${actor} isOpen=${isOpen} onToggle=${() => setIsOpen(!isOpen)} />
        <div class="actor-state"><${State} actor=${actor} /></div>
        <${Number} name=${t("ui.house.restarts")} value=${actor.restarts} isNews=${actor.restarts > 0} />
        <${Number} name=${t("ui.house.mailbox")} value=${actor.mailbox} isNews=${actor.mailbox > 0} />
        <div class="actor-do">${!isRoot && html`<${RestartButton} actor=${actor} onRestart=${onRestart} />`}</div>
      </div>
      ${actor.last_crash && html`<${Crash} crash=${actor.last_crash} />`}
      ${isOpen && actor.supervisor && html`<${Children} actor=${actor} onRestart=${onRestart} />`}
    </li>
  `;
}

function Children({ actor, onRestart }) {
  if (actor.children.length === 0) return html`<p class="actor-none">${t("ui.house.no_children")}</p>`;
  return html`
    <ul class="tree">
      ${actor.children.map((child) => html`<${Actor} key=${child.path} actor=${child} onRestart=${onRestart} />`)}
    </ul>
  `;
}

function Name({ actor, isOpen, onToggle }) {
  const run = actor.name.startsWith("run:") ? actor.name.slice("run:".length) : null;
  return html`
    <div class="actor-name">
      ${actor.supervisor
        ? html`<button type="button" class="fold quiet" aria-expanded=${isOpen} onClick=${onToggle}
            aria-label=${t(isOpen ? "ui.house.close" : "ui.house.open", { name: actor.name })}
            ><span aria-hidden="true">${isOpen ? "▾" : "▸"}</span></button>`
        : html`<span class="leaf" aria-hidden="true">·</span>`}
      ${run
        ? html`<${RunLink} run=${run} prefix="run:" />`
        : html`<span class="mono" title=${actor.path}>${actor.name}</span>`}
      ${actor.supervisor && html`<span class="pill">${t("ui.house.supervisor")}</span>`}
    </div>
  `;
}

function State({ actor }) {
  return html`
    <${StateBadge} status=${tone(actor.state)}>${stateWord(actor.state)}<//>
    <span class="under num"><${Since} at=${actor.since} /></span>
  `;
}

function Number({ name, value, isNews }) {
  return html`
    <div class="actor-number num" data-news=${isNews}>
      <span class="actor-label">${name}${" "}</span>${value === null || value === undefined ? "–" : count(value)}
    </div>
  `;
}

function RestartButton({ actor, onRestart }) {
  return html`<button type="button" class="quiet small" aria-label=${t("ui.house.restart_label", { actor: actor.name })}
    onClick=${() => onRestart(actor)}>${t("ui.house.restart")}</button>`;
}
