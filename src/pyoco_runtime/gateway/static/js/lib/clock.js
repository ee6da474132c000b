// The gateway's time, as far as its events tell it: a viewer's clock may be wrong, and STALE must not depend on it.
import { signal } from "./signal.js";
import { useEffect } from "./ui.js";

let offsetSec = 0;
const second = signal(0);
let ticking = null;
let watchers = 0;

/** Unix seconds by the gateway's clock. */
export function now() {
  return Date.now() / 1000 + offsetSec;
}

/** An event said what time it is there. Below two seconds the difference is the way here, not the clock. */
export function heard(epochSec) {
  if (typeof epochSec !== "number") return;
  const found = epochSec - Date.now() / 1000;
  offsetSec = Math.abs(found) < 2 ? 0 : found;
}

/** The time, once a second, as long as somebody looks. */
export function useNow() {
  useTicking();
  second.use();
  return now();
}

function useTicking() {
  useEffect(() => {
    watchers += 1;
    ticking ??= setInterval(() => document.hidden || second.write(second.read() + 1), 1000);
    return () => {
      watchers -= 1;
      if (watchers === 0) {
        clearInterval(ticking);
        ticking = null;
      }
    };
  }, []);
}
