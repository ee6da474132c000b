// A stream of server-sent events over fetch: EventSource cannot send the key's header.
import { errorOf, keyHeaders, ApiError } from "./api.js";
import { heard } from "./clock.js";
import { report } from "./connection.js";
import { anotherKey, currentKey, refused } from "./key.js";
import { pause } from "./pause.js";
import { eventReader } from "./sse.js";

const SILENCE_MS = 15_000; // three heartbeats of the gateway
const HIDDEN_MS = 30_000; // a browser has six connections for all tabs of a site: one that nobody sees gives its up

/**
 * Follow `path` until the returned `stop()` is called: reconnects by itself, with Last-Event-ID.
 * `onEvent({id, event, data})` for each event; `onState(state, error)`: "open"; "lost" (the shell says so) and "denied"
 * (the shell asks), both tried again; "failed" (the gateway has a defect, tried again) and "over" (there is nothing to
 * follow) are for the view to show.
 */
export function stream(path, { lastEventId = null, onEvent = () => {}, onState = () => {} } = {}) {
  const stopping = new AbortController();
  const state = { path, lastId: lastEventId, onEvent, onState, source: {}, stopped: stopping.signal };
  follow(state);
  return () => {
    stopping.abort();
    report(state.source, null);
  };
}

async function follow(state) {
  for (let attempt = 0; !state.stopped.aborted; ) {
    await visible(state.stopped);
    const key = currentKey();
    try {
      const heardAny = await connection(state);
      attempt = heardAny ? 0 : attempt + 1;
      if (!heardAny) await pause(attempt, state.stopped);
    } catch (error) {
      if (state.stopped.aborted) break;
      const kind = kindOf(error);
      report(state.source, kind === "lost" ? error.trouble : null);
      state.onState(kind, error);
      if (kind === "over") return;
      if (kind === "denied") {
        refused(key);
        await anotherKey(key, state.stopped);
        attempt = 0;
      } else {
        await pause(attempt, state.stopped);
        attempt += 1;
      }
    }
  }
  report(state.source, null);
}

function kindOf(error) {
  if (!(error instanceof ApiError)) return "failed";
  if (error.isDenied) return "denied";
  if (error.trouble !== null) return "lost";
  return error.status < 500 ? "over" : "failed";
}

/** One connection, to its end. Whether it brought anything. */
async function connection(state) {
  const ending = new AbortController();
  const end = () => ending.abort();
  const watch = watching(end);
  state.stopped.addEventListener("abort", end);
  try {
    const reader = await opened(state, ending.signal);
    const feed = eventReader();
    const text = new TextDecoder();
    for (let any = false; ; any = true) {
      const { done, value } = await reader.read();
      if (done) return any;
      watch.alive();
      if (!any) {
        report(state.source, null);
        state.onState("open");
      }
      for (const event of feed(text.decode(value, { stream: true }))) take(state, event);
    }
  } catch (error) {
    if (watch.isHidden || state.stopped.aborted) return true; // we have left, nothing was lost
    throw error instanceof ApiError || error.name === "SyntaxError" ? error : new ApiError(0, null, "connection lost");
  } finally {
    watch.over();
    state.stopped.removeEventListener("abort", end);
    ending.abort();
  }
}

async function opened(state, signal) {
  const headers = { accept: "text/event-stream", ...keyHeaders() };
  if (state.lastId !== null) headers["last-event-id"] = String(state.lastId);
  const answer = await fetch(state.path, { signal, headers, cache: "no-store" });
  if (!answer.ok) throw errorOf(answer.status, await answer.json().catch(() => null));
  return answer.body.getReader();
}

function take(state, event) {
  if (event.id !== null) state.lastId = event.id;
  heard(event.data?.ts);
  // an index that has lost NATS goes on sending heartbeats, and says so in them
  if (event.data !== null && "behind" in event.data) report(state.source, event.data.behind ? "behind" : null);
  state.onEvent(event);
}

/** Calls `end` after too long a silence, and once nobody has looked at the page for a while. */
function watching(end) {
  let silence = setTimeout(end, SILENCE_MS);
  let hidden = null;
  const watch = {
    isHidden: false,
    alive() {
      clearTimeout(silence);
      silence = setTimeout(end, SILENCE_MS);
    },
    over() {
      clearTimeout(silence);
      clearTimeout(hidden);
      document.removeEventListener("visibilitychange", looked);
    },
  };
  const leave = () => {
    watch.isHidden = true;
    end();
  };
  const looked = () => {
    clearTimeout(hidden);
    if (document.hidden) hidden = setTimeout(leave, HIDDEN_MS);
  };
  document.addEventListener("visibilitychange", looked);
  looked();
  return watch;
}

function visible(stopped) {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      if (document.hidden && !stopped.aborted) return;
      document.removeEventListener("visibilitychange", done);
      resolve();
    };
    document.addEventListener("visibilitychange", done);
    stopped.addEventListener("abort", done);
  });
}
