// Whether the page shows what is true now: who has lost what, and why.
import { wakeAll } from "./pause.js";
import { signal } from "./signal.js";

const troubles = new Map(); // source -> "gateway" | "nats" | "behind"
const ORDER = ["gateway", "nats", "behind"];

/** The worst of them, or null. */
export const trouble = signal(null);

/** `source` (any object) cannot reach what it needs, or with null: can again, or does not want to any more. */
export function report(source, kind) {
  const wasLost = kind === null && troubles.delete(source);
  if (kind !== null) troubles.set(source, kind);
  const found = new Set(troubles.values());
  trouble.write(ORDER.find((each) => found.has(each)) ?? null);
  if (wasLost) wakeAll();
}
