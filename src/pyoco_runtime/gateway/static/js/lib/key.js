// The API key: kept for this tab, asked for by the shell.
import { signal } from "./signal.js";
import { session } from "./store.js";

let key = session.get("key");
let waiting = [];

/** null, or why a key is asked for: "needed" (there was none), "wrong" (it was refused). */
export const asked = signal(null);

export function currentKey() {
  return key;
}

/** A request was refused with the key that it carried. */
export function refused(usedKey) {
  if (usedKey !== key) return; // a newer one is already in place
  asked.write(usedKey ? "wrong" : "needed");
}

/** Resolves when there is another key than `usedKey`. */
export function anotherKey(usedKey, stopped) {
  if (key !== usedKey) return Promise.resolve();
  return new Promise((resolve) => {
    waiting.push(resolve);
    stopped?.addEventListener("abort", resolve, { once: true });
  });
}

/** This one was accepted: everybody who waits goes on with it. */
export function setKey(next) {
  key = next;
  session.set("key", next);
  asked.write(null);
  const woken = waiting;
  waiting = [];
  for (const wake of woken) wake();
}
