// What the states of actors mean to an operator. Pure but for the words.

import { t } from "../lib/i18n.js";

const WORDS = {
  down: "ui.house.state_down",
  waiting: "ui.house.state_waiting",
  starting: "ui.house.state_starting",
  running: "ui.house.state_running",
  stopping: "ui.house.state_stopping",
  stuck: "ui.house.state_stuck",
  done: "ui.house.state_done",
};
const TONES = {
  down: "error",
  waiting: "backoff",
  starting: "starting",
  running: "ok",
  stopping: "stopping",
  stuck: "error",
};

/** The word for a state; a state that a newer process has and we do not know stays as it is. */
export function stateWord(state) {
  return state in WORDS ? t(WORDS[state]) : state;
}

/** The colour of a state, as a value of data-status. */
export function tone(state) {
  return TONES[state] ?? "idle";
}

/** Whether it does what it should. */
export function isWell(actor) {
  return actor.state === "running" || actor.state === "done";
}

/** All actors of a tree; none of no tree. */
export function walk(actor) {
  return actor ? [actor, ...actor.children.flatMap(walk)] : [];
}

/** The tree with those only that are down or have crashed, and the supervisors above them; null if there are none. */
export function troubled(actor) {
  const children = actor.children.map(troubled).filter((child) => child !== null);
  if (children.length === 0 && isWell(actor) && !actor.last_crash) return null;
  return { ...actor, children };
}

/** The crashes in `next` that are younger than those in `before`: [actor]. */
export function newCrashes(before, next) {
  const known = new Map(walk(before).map((actor) => [actor.path, actor.last_crash?.at ?? 0]));
  return walk(next).filter((actor) => actor.last_crash && actor.last_crash.at > (known.get(actor.path) ?? 0));
}
