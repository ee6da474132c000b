// The rows of the list, as data. Pure: no DOM, no network.
//
// The list is newest first when it is loaded. From then on a row that changes stays where it is, and runs that were not
// there come in at the top: what one reads does not move. All operations return a new value and leave the old one.
import { isTerminal } from "../lib/status.js";

/** No rows; `cursor` is where the next page begins, null at the end, undefined before the first page. */
export const NONE = Object.freeze({ rows: [], cursor: undefined, partial: false });

/** One more page at the end. A run that is there already (it has moved up since) is not shown twice. */
export function withPage(list, page) {
  const known = new Set(list.rows.map((run) => run.run_id));
  const fresh = page.items.filter((run) => !known.has(run.run_id));
  const partial = list.partial || Boolean(page.partial);
  return { rows: list.rows.concat(fresh), cursor: page.next_cursor ?? null, partial };
}

/** Which of these changes (run_id -> run, or null: it is in the list no more) concern rows, and which are new. */
export function sorted(list, changes) {
  const known = new Set(list.rows.map((run) => run.run_id));
  const inPlace = new Map();
  const fresh = new Map();
  for (const [id, run] of changes) {
    if (known.has(id)) inPlace.set(id, run);
    else if (run !== null) fresh.set(id, run);
  }
  return { inPlace, fresh };
}

/** Rows changed where they are; those that are in the list no more are marked, or taken away. */
export function changedInPlace(list, changes, { keepGone }) {
  if (changes.size === 0) return list;
  const rows = [];
  for (const run of list.rows) {
    const next = changes.get(run.run_id);
    if (next === undefined) rows.push(run);
    else if (next !== null) rows.push(newer(run, next));
    else if (keepGone) rows.push({ ...run, isGone: true });
  }
  return { ...list, rows };
}

/** New runs at the top, the newest first. */
export function withFresh(list, fresh) {
  if (fresh.size === 0) return list;
  const coming = [...fresh.values()].sort((a, b) => (b.updated_at ?? 0) - (a.updated_at ?? 0));
  return { ...list, rows: coming.concat(list.rows) };
}

/** Without the rows that were only kept because somebody was reading. */
export function withoutGone(list) {
  return list.rows.some((run) => run.isGone) ? { ...list, rows: list.rows.filter((run) => !run.isGone) } : list;
}

/** The part of `count` rows to draw: [from, to), some more than can be seen. */
export function windowOf(count, rowHeight, top, height, spare = 12) {
  const from = Math.max(0, Math.min(count, Math.floor(top / rowHeight) - spare));
  const to = Math.max(from, Math.min(count, Math.ceil((top + height) / rowHeight) + spare));
  return [from, to];
}

function newer(old, next) {
  if (isTerminal(old.status) && !isTerminal(next.status)) return old; // an answer that the end has overtaken
  return (next.revision ?? Infinity) >= (old.revision ?? 0) ? next : old;
}
