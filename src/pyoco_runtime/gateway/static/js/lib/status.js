// What a status means: pure.

export const RUN_STATUSES = ["PENDING", "RUNNING", "CANCELLING", "COMPLETED", "FAILED", "CANCELLED"];
const TERMINAL = new Set(["COMPLETED", "FAILED", "CANCELLED"]);

export function isTerminal(status) {
  return TERMINAL.has(status);
}

/** The status as it reads now: RUNNING without a heartbeat for too long is STALE. */
export function reading(run, now, staleAfterSec) {
  const isStale = run.status === "RUNNING" && run.heartbeat_at != null && now - run.heartbeat_at > staleAfterSec;
  return isStale ? "STALE" : run.status;
}

/** Seconds from start to end, or until now; null if it has not started. */
export function elapsed(run, now) {
  if (run.start_time == null) return null;
  if (run.end_time != null) return Math.max(0, run.end_time - run.start_time);
  return isTerminal(run.status) ? null : Math.max(0, now - run.start_time);
}
