// A set of records that a stream keeps true: all of them first, then each that came, changed or went.

import { useStream } from "../lib/parts.js";
import { useEffect, useRef, useState } from "../lib/ui.js";

const DRAW_MS = 200; // a stream may bring hundreds of changes a second; the eye wants no more than this

/**
 * Follow `path`, whose events are `whole` ({items}), `one` (a record) and `gone`; `id` names the field that tells
 * records apart. Returns {records: Map or null before the first event, state, error: why the stream is over}.
 */
export function useFollowed(path, { whole, one, id }) {
  const records = useRef(null);
  const [error, setError] = useState(null);
  const redraw = useSoon();
  const state = useStream(path, {
    onEvent({ event, data }) {
      if (event === whole) records.current = new Map(data.items.map((item) => [item[id], item]));
      else if (event === one) records.current?.set(data[id], data);
      else if (event === "gone") records.current?.delete(data[id]);
      else return;
      redraw();
    },
    onState: (_, problem) => setError(problem ?? null),
  });
  return { records: records.current, state, error };
}

/** Draws at once, and then not again before DRAW_MS have passed. */
function useSoon() {
  const [, draw] = useState(0);
  const due = useRef({ timer: null, last: -Infinity });
  useEffect(() => () => clearTimeout(due.current.timer), []);
  return () => {
    const wait = due.current.last + DRAW_MS - performance.now();
    due.current.timer ??= setTimeout(() => {
      due.current = { timer: null, last: performance.now() };
      draw((n) => n + 1);
    }, wait);
  };
}
