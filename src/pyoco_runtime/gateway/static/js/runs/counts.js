// Stored runs by status: as the gateway counts them. Its stream is slow; when the list moves they are looked at again.
import { get } from "../lib/api.js";
import { useStream } from "../lib/parts.js";
import { useCallback, useEffect, useRef, useState } from "../lib/ui.js";

const REST_MS = 2000; // between two looks, however much happens

/** [stats or null, look()]: call look() whenever something has happened. */
export function useStats() {
  const [stats, setStats] = useState(null);
  const resting = useRef({ timer: null, again: false, stopped: new AbortController() }).current;
  const look = useCallback(() => {
    if (resting.timer !== null) {
      resting.again = true;
      return;
    }
    resting.timer = setTimeout(() => {
      resting.timer = null;
      if (resting.again) look();
      resting.again = false;
    }, REST_MS);
    // counts are a help: without them the list is still the list
    get("/stats", { signal: resting.stopped.signal }).then(setStats, () => {});
  }, []);
  useStream("/stats/watch", { onEvent: ({ event, data }) => event === "stats" && setStats(data) });
  useEffect(() => () => {
    resting.stopped.abort();
    clearTimeout(resting.timer);
  }, []);
  return [stats, look];
}
