// Everything that a dead letter says.

import { Time } from "../lib/format.js";
import { t } from "../lib/i18n.js";
import { Copy } from "../lib/parts.js";
import { href } from "../lib/router.js";
import { html } from "../lib/ui.js";
import { reasonHint, reasonWord } from "./reasons.js";

export function LetterFacts({ letter }) {
  const hint = reasonHint(letter.reason);
  return html`
    ${hint && html`<p class="letter-hint">${hint}</p>`}
    ${letter.error && html`<pre class="letter-error" tabindex="0">${letter.error}</pre>`}
    <dl class="letter-facts">
      <${Fact} name="seq">${letter.seq}<//>
      <${Fact} name="when"><${Time} at=${letter.timestamp} /><//>
      <${Fact} name="reason">${reasonWord(letter.reason)} <code>${letter.reason}</code><//>
      <${Fact} name="run">${letter.run_id && html`<${RunLink} run=${letter.run_id} />`}<//>
      <${Fact} name="flow">${letter.flow_name}<//>
      <${Fact} name="tag">${letter.tag}<//>
      <${Fact} name="tags">${letter.tags?.join(", ")}<//>
      <${Fact} name="worker">${letter.worker_id}<//>
      <${Fact} name="delivered">${letter.num_delivered}<//>
      <${Fact} name="subject">${letter.subject}<//>
      <${Fact} name="tenant">${letter.tenant_id}<//>
      <${Fact} name="key">${letter.api_key_id}<//>
    </dl>
    ${letter.payload && html`<${Payload} text=${letter.payload} />`}
  `;
}

function Fact({ name, children }) {
  const isEmpty = children === null || children === undefined || children === "" || children === false;
  return html`<dt>${t(`ui.letters.${name}`)}</dt>
    <dd>${isEmpty ? html`<span class="faint">–</span>` : children}</dd>`;
}

/** The whole id, and the way to the run. */
export function RunLink({ run }) {
  return html`<a class="mono" href=${href(`/runs/${encodeURIComponent(run)}`)}>${run}</a>${" "}
    <${Copy} text=${run} label=${run} />`;
}

function Payload({ text }) {
  return html`
    <p class="row"><b>${t("ui.letters.payload")}</b> <${Copy} text=${text} label=${t("ui.letters.payload")} /></p>
    <pre tabindex="0">${text}</pre>
  `;
}
