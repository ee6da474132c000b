// The tasks of a run as the page shows them: pure.
import { isTerminal } from "../lib/status.js";

/** [{name, state, record}] in the order of the graph, else of the snapshot. NOT_RUN: the run ended without it. */
export function tasksOf(run, graph) {
  const drawn = (graph?.nodes ?? []).filter((node) => node.kind === "task");
  const names = new Set(drawn.map((node) => node.task ?? node.id));
  for (const name of Object.keys(run.tasks ?? {})) names.add(name);
  return [...names].map((name) => {
    const record = run.task_records?.[name] ?? null;
    const state = run.tasks?.[name] ?? record?.state ?? "PENDING";
    return { name, state: isTerminal(run.status) && neverRan(state, record) ? "NOT_RUN" : state, record };
  });
}

/** The engine calls cancelled also what a switch did not choose, and what stood behind a failure. */
function neverRan(state, record) {
  return state === "PENDING" || (state === "CANCELLED" && record?.started_at == null);
}

/** The state of a loop or a switch, from the tasks inside it. */
export function innerState(states) {
  for (const each of ["RUNNING", "FAILED", "CANCELLED"]) if (states.includes(each)) return each;
  if (states.includes("SUCCEEDED")) return "SUCCEEDED";
  return states[0] ?? "PENDING";
}

/** Node id -> state, for every node of the graph. */
export function nodeStates(graph, tasks) {
  const byName = new Map(tasks.map((task) => [task.name, task.state]));
  const states = new Map();
  const inside = new Map();
  for (const node of graph.nodes) {
    if (node.kind === "task") states.set(node.id, byName.get(node.task ?? node.id) ?? "PENDING");
    if (node.parent) inside.set(node.parent, [...(inside.get(node.parent) ?? []), node.id]);
  }
  const stateOf = (id) => {
    if (!states.has(id)) {
      states.set(id, "PENDING"); // ends a circle, which no flow has
      states.set(id, innerState((inside.get(id) ?? []).map(stateOf)));
    }
    return states.get(id);
  };
  for (const node of graph.nodes) stateOf(node.id);
  return states;
}

/** The task to show when nobody has chosen one: what failed, or the only one. */
export function firstChoice(tasks) {
  return (tasks.find((task) => task.state === "FAILED") ?? (tasks.length === 1 ? tasks[0] : null))?.name ?? null;
}

/** Seconds that a task has taken, or takes so far; null if it has not started. */
export function taskSeconds(record, now) {
  if (record?.duration_ms != null) return record.duration_ms / 1000;
  if (record?.started_at == null) return null;
  return Math.max(0, (record.ended_at ?? now) - record.started_at);
}
