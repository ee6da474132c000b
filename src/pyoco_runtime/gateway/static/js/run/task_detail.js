// What is known of one task: what it was given, what it gave, what it said, and how it failed.
import { useNow } from "../lib/clock.js";
import { Time, duration, ticking } from "../lib/format.js";
import { t } from "../lib/i18n.js";
import { Badge, Copy } from "../lib/parts.js";
import { html, useEffect, useLayoutEffect, useRef } from "../lib/ui.js";
import { taskWord } from "./graph.js";
import { taskSeconds } from "./tasks.js";

/** `isByHand`: somebody has just chosen it, and wants to see it wherever it is. */
export function TaskDetail({ task, isByHand, onClose }) {
  const record = task.record ?? {};
  const box = useRef(null);
  useEffect(() => {
    const { top } = box.current.getBoundingClientRect();
    const isInSight = top > 0 && top < window.innerHeight * 0.7;
    if (isByHand && !isInSight) box.current.scrollIntoView({ block: "start" });
  }, []);
  return html`<div class="task-detail" ref=${box}>
    <div class="row spread"><h2 class="task-name">${task.name}</h2>
      <button type="button" class="quiet" onClick=${onClose}>${t("ui.shared.action.close")}</button></div>
    <div class="row">${task.state === "NOT_RUN" ? html`<span class="badge" data-status="PENDING">${taskWord(task.state)}</span>`
      : html`<${Badge} status=${task.state} of="task" />`}
      ${record.started_at != null && html`<span><${Time} at=${record.started_at} /> · ${task.state === "RUNNING"
        ? html`<${Taking} record=${record} />` : duration(taskSeconds(record, 0))}</span>`}</div>
    ${record.error && html`<${Text} name="error" text=${record.error} isBad />`}
    ${record.traceback && html`<${Text} name="traceback" text=${record.traceback} isWide />`}
    ${record.stdout && html`<${Log} name="stdout" text=${record.stdout} />`}
    ${record.stderr && html`<${Log} name="stderr" text=${record.stderr} />`}
    ${isSomething(record.inputs) && html`<${Text} name="inputs" text=${json(record.inputs)} />`}
    ${record.output != null && html`<${Text} name="output" text=${json(record.output)} />`}
    ${isSomething(record.artifacts) && html`<${Text} name="artifacts" text=${json(record.artifacts)} />`}
    ${task.record === null && html`<p class="faint">${t("ui.run.no_record")}</p>`}
  </div>`;
}

function Taking({ record }) {
  return ticking(taskSeconds(record, useNow()));
}

/** A block of text with its name and a button that copies it. */
export function Text({ name, text, isBad = false, isWide = false }) {
  const label = t(`ui.run.part.${name}`);
  return html`<div class="text-part" data-part=${name} data-bad=${isBad} data-wide=${isWide}>
    <div class="row spread"><p class="part-name">${label}</p><${Copy} text=${text} label=${label} /></div>
    <pre tabindex="0">${text}</pre></div>`;
}

/** Output as it grows: who reads the end stays at the end, who has scrolled up stays there. */
function Log({ name, text }) {
  const box = useRef(null);
  const isAtEnd = useRef(true);
  const label = t(`ui.run.part.${name}`);
  useLayoutEffect(() => {
    if (isAtEnd.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text]);
  const scrolled = ({ target }) => {
    isAtEnd.current = target.scrollTop + target.clientHeight >= target.scrollHeight - 8;
  };
  return html`<div class="text-part" data-part=${name}>
    <div class="row spread"><p class="part-name">${label}</p><${Copy} text=${text} label=${label} /></div>
    <pre class="log" tabindex="0" ref=${box} onScroll=${scrolled}>${text}</pre></div>`;
}

export function json(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

function isSomething(value) {
  return value != null && typeof value === "object" && Object.keys(value).length > 0;
}
