// How long to wait before the next attempt: half a second, doubled up to five, with jitter so that a gateway that comes
// back is not asked by every open page at once. Who waits is woken when the network, or another request, is back.

const LONGEST_SEC = 5;
const BACK = "pyoco-back";

export function pause(attempt, signal) {
  const seconds = Math.min(LONGEST_SEC, 0.5 * 2 ** attempt) * (0.75 + Math.random() / 2);
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      for (const name of [BACK, "online"]) window.removeEventListener(name, done);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, seconds * 1000);
    for (const name of [BACK, "online"]) window.addEventListener(name, done);
    signal?.addEventListener("abort", done);
  });
}

/** Something that was lost is back: whoever waits tries again now. */
export function wakeAll() {
  window.dispatchEvent(new Event(BACK));
}
