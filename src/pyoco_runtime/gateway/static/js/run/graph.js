// The graph of a run, drawn. Its shape never changes while it runs; only colours and words do.
import { t } from "../lib/i18n.js";
import { statusWord } from "../lib/parts.js";
import { html, useEffect, useMemo, useState } from "../lib/ui.js";
import { layout } from "./layout.js";
import { nodeStates } from "./tasks.js";
import { fitted } from "./text_width.js";

const NARROW = window.matchMedia("(max-width: 700px)");
const CURVE = 24;
const SMALLEST = 0.85; // a wide graph is drawn smaller, as long as it can be read; then it scrolls

/** `onChoose(name)` when a task is clicked, or entered by keyboard. */
export function Graph({ graph, tasks, chosen, onChoose }) {
  const isDown = useIsNarrow();
  const plan = useMemo(() => layout(graph, { isDown }), [JSON.stringify(graph), isDown]);
  const states = nodeStates(graph, tasks);
  return html`<div class="graph-scroll" tabindex="0" role="group" aria-label=${t("ui.run.graph")}>
    <svg class="graph" style=${{ width: `${plan.width}px`, minWidth: `${plan.width * SMALLEST}px` }} viewBox=${`0 0 ${plan.width} ${plan.height}`}>
      <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse"
        ><path d="M0 0.5 7 4 0 7.5z" class="arrow" /></marker></defs>
      ${plan.frames.map((frame) => html`<${Frame} key=${frame.id} frame=${frame} nodes=${plan.nodes} isDown=${isDown} />`)}
      ${plan.edges.map((edge) => html`<${Edge} key=${`${edge.from} ${edge.to} ${edge.label}`} edge=${edge} isDown=${isDown}
        isDone=${states.get(edge.from) === "SUCCEEDED" && !["PENDING", "NOT_RUN"].includes(states.get(edge.to))} />`)}
      ${plan.nodes.map((node) => (node.kind === "task"
        ? html`<${TaskNode} key=${node.id} node=${node} state=${states.get(node.id)} chosen=${chosen} onChoose=${onChoose} />`
        : html`<${ControlNode} key=${node.id} node=${node} state=${states.get(node.id)} />`))}
    </svg>
  </div>`;
}

function useIsNarrow() {
  const [isNarrow, set] = useState(NARROW.matches);
  useEffect(() => {
    const changed = () => set(NARROW.matches);
    NARROW.addEventListener("change", changed);
    return () => NARROW.removeEventListener("change", changed);
  }, []);
  return isNarrow;
}

function TaskNode({ node, state, chosen, onChoose }) {
  const name = node.task ?? node.id;
  const word = taskWord(state);
  const choose = () => onChoose(name);
  const pressed = (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    choose();
  };
  return html`<g class="node" role="button" tabindex="0" aria-pressed=${chosen === name} aria-label=${`${name}: ${word}`}
    data-status=${state} data-task=${name} transform=${`translate(${node.x} ${node.y})`} onClick=${choose} onKeyDown=${pressed}>
    <title>${name}</title>
    <rect class="node-box" width=${node.width} height=${node.height} rx="8" />
    <rect class="node-edge" width="5" height=${node.height - 16} x="6" y="8" rx="2.5" />
    <text class="node-name" x="20" y="21">${fitted(name, 18)}</text>
    <text class="node-word" x="20" y="40">${word}${node.join === "any" ? ` · ${t("ui.run.join_any")}` : ""}</text>
  </g>`;
}

function ControlNode({ node, state }) {
  const name = controlName(node);
  const { width, height } = node;
  const cut = height / 2;
  const shape = node.kind === "switch"
    ? `M${cut} 0H${width - cut}L${width} ${cut}L${width - cut} ${height}H${cut}L0 ${cut}Z`
    : `M${cut} 0H${width - cut}A${cut} ${cut} 0 0 1 ${width - cut} ${height}H${cut}A${cut} ${cut} 0 0 1 ${cut} 0Z`;
  return html`<g class="control" role="img" aria-label=${`${name}: ${node.label ?? ""}, ${taskWord(state)}`} data-status=${state}
    transform=${`translate(${node.x} ${node.y})`}>
    <title>${`${name} ${node.label ?? ""}`}</title>
    <path class="node-box" d=${shape} />
    <text class="control-name" x=${width / 2} y="17">${name}</text>
    <text class="control-label" x=${width / 2} y="32">${fitted(node.label ?? "", 20)}</text>
  </g>`;
}

function controlName(node) {
  if (node.kind === "switch") return t("ui.run.switch");
  const known = ["repeat", "foreach", "until"].includes(node.loop) ? node.loop : "loop";
  const max = node.max != null ? ` ${t("ui.run.at_most", { n: node.max })}` : "";
  return `↻ ${t(`ui.run.loops.${known}`)}${max}`;
}

/** The frame around a body; for a loop also the way back to its beginning. */
function Frame({ frame, nodes, isDown }) {
  const head = nodes.find((node) => node.id === frame.id);
  return html`<g class="frame" data-kind=${frame.kind} aria-hidden="true">
    <rect x=${frame.x} y=${frame.y} width=${frame.width} height=${frame.height} rx="12" />
    ${frame.kind === "loop" && html`<path class="back" d=${wayBack(frame, head, isDown)} marker-end="url(#arrow)" />`}
  </g>`;
}

function wayBack(frame, head, isDown) {
  if (isDown) {
    const x = frame.x + frame.width - 10;
    const y = head.y + head.height / 2;
    const foot = frame.y + frame.height - 8;
    const up = `M${x - 30} ${foot}H${x - 8}Q${x} ${foot} ${x} ${foot - 8}V${y + 8}`;
    return `${up}Q${x} ${y} ${x - 8} ${y}H${head.x + head.width + 2}`;
  }
  const y = frame.y + frame.height - 10;
  const x = head.x + head.width / 2;
  const right = frame.x + frame.width - 8;
  const along = `M${right} ${y - 30}V${y - 8}Q${right} ${y} ${right - 8} ${y}H${x + 8}`;
  return `${along}Q${x} ${y} ${x} ${y - 8}V${head.y + head.height + 2}`;
}

function Edge({ edge, isDown, isDone }) {
  const label = edge.label === "*" ? t("ui.run.default_case") : edge.label;
  const end = edge.points[1]; // the label stands where its own branch begins
  const at = isDown ? [end[0], end[1] - 14] : [end[0] - 12, end[1] - 7];
  return html`<g class="edge" data-done=${isDone} aria-hidden="true">
    <path d=${curve(edge.points, isDown)} marker-end="url(#arrow)" />
    ${label !== null && html`<text class="edge-label" x=${at[0]} y=${at[1]} text-anchor=${isDown ? "middle" : "end"}>${
      fitted(String(label), 7)}<title>${label}</title></text>`}
  </g>`;
}

/** Through all points, leaving and arriving straight. */
function curve(points, isDown) {
  let path = `M${points[0].join(" ")}`;
  for (let n = 1; n < points.length; n += 1) {
    const [ax, ay] = points[n - 1];
    const [bx, by] = points[n];
    const isStraight = isDown ? ax === bx : ay === by;
    const pull = Math.max(CURVE, (isDown ? by - ay : bx - ax) / 2);
    if (isStraight) path += `L${bx} ${by}`;
    else if (isDown) path += `C${ax} ${ay + pull} ${bx} ${by - pull} ${bx} ${by}`;
    else path += `C${ax + pull} ${ay} ${bx - pull} ${by} ${bx} ${by}`;
  }
  return path;
}

/** The word for the state of a task. */
export function taskWord(state) {
  return state === "NOT_RUN" ? t("ui.run.not_run") : statusWord(state, "task");
}
