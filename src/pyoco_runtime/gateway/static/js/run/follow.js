// One run, followed from its stream until it is over.
import { get } from "../lib/api.js";
import { useStream } from "../lib/parts.js";
import { isTerminal } from "../lib/status.js";
import { useEffect, useState } from "../lib/ui.js";

const OWNER = ["worker_alive", "worker_state", "worker_heartbeat_at", "worker_tags", "worker_hidden"];

/** {run, graph, waiting, error, take(snapshot)}: `run` is null until it is there, `error` says why it never will be. */
export function useRun(runId) {
  const path = `/runs/${encodeURIComponent(runId)}`;
  const [state, setState] = useState({ run: null, graph: null, waiting: null, error: null });
  const take = (snapshot, waiting) => setState((old) => merged(old, snapshot, waiting));
  const isOver = state.run !== null && isTerminal(state.run.status);
  const isOwnerUnknown = Boolean(state.run?.worker_id) && !("worker_alive" in state.run) && !isOver;
  useEffect(() => {
    if (state.run !== null && !isOwnerUnknown) return undefined;
    const wanted = new AbortController();
    // the first look, and later who has it now: that is not in the stream
    get(`${path}?include=records`, { signal: wanted.signal }).then(
      (found) => take(found, found.waiting),
      (error) => error.name === "AbortError" || setState((old) => ({ ...old, error })),
    );
    return () => wanted.abort();
  }, [path, isOwnerUnknown]);
  useStream(isOver ? null : `${path}/watch?include=records&timeout_sec=600`, {
    onEvent: ({ event, data }) => {
      if (event === "snapshot") take(data.snapshot, data.waiting);
      else if (event === "heartbeat" && "waiting" in data) setState((old) => ({ ...old, waiting: data.waiting }));
    },
    onState: (_, error) => error && setState((old) => ({ ...old, error })),
  });
  return { ...state, take };
}

function merged(old, snapshot, waiting) {
  const isOld = old.run !== null && (snapshot.updated_at ?? 0) < (old.run.updated_at ?? 0);
  const isSameOwner = old.run?.worker_id === snapshot.worker_id;
  if (isOld || (old.run !== null && isTerminal(old.run.status) && !isTerminal(snapshot.status))) {
    return isSameOwner ? { ...old, run: { ...old.run, ...ownerIn(snapshot) } } : old;
  }
  const kept = isSameOwner ? ownerIn(old.run ?? {}) : {};
  const records = "task_records" in snapshot ? {} : { task_records: old.run?.task_records };
  return {
    run: { ...kept, ...records, ...snapshot },
    graph: snapshot.graph ?? old.graph, // sent once, and again only when it has changed
    waiting: waiting === undefined ? old.waiting : waiting,
    error: null,
  };
}

function ownerIn(run) {
  return Object.fromEntries(OWNER.filter((name) => name in run).map((name) => [name, run[name]]));
}
