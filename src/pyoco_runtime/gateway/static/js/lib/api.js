// The gateway's HTTP API. What reads waits: without a key until there is one, without a connection until it is back,
// so that views recover by themselves. What changes something fails at once: nothing happens minutes after a click.
import config from "./config.js";
import { report } from "./connection.js";
import { anotherKey, currentKey, refused } from "./key.js";
import { pause } from "./pause.js";

export { stream } from "./stream.js";

const KEY_ERRORS = new Set(["ERR-PYOCO-0014", "ERR-PYOCO-0015"]);
const NATS_AWAY = "ERR-PYOCO-0003";

/** An answer that is an error. `status` 0: there was no answer. */
export class ApiError extends Error {
  constructor(status, errId, detail) {
    super(typeof detail === "string" ? detail : JSON.stringify(detail));
    this.name = "ApiError";
    this.status = status;
    this.errId = errId;
    this.detail = detail;
  }

  /** The key is missing or wrong (an admin's key that is needed is another matter). */
  get isDenied() {
    return KEY_ERRORS.has(this.errId) || this.status === 401;
  }

  /** "gateway" or "nats" if this goes away by itself, else null. */
  get trouble() {
    if (this.status === 0 || this.status === 502 || this.status === 504) return "gateway";
    return this.errId === NATS_AWAY ? "nats" : null;
  }
}

/** The JSON of a GET. Rejects with ApiError, or with AbortError once `signal` says so. */
export async function get(path, { signal } = {}) {
  for (let attempt = 0, source = {}; ; attempt += 1) {
    const key = currentKey();
    try {
      const found = await asked(path, { signal });
      report(source, null);
      return found;
    } catch (error) {
      if (signal?.aborted || !(error instanceof ApiError)) report(source, null);
      if (!(error instanceof ApiError)) throw error;
      report(source, error.trouble);
      if (error.isDenied) {
        refused(key);
        await anotherKey(key, signal);
      } else if (error.trouble) await pause(attempt, signal);
      else throw error;
    }
    if (signal?.aborted) {
      report(source, null);
      throw new DOMException("not wanted any more", "AbortError");
    }
  }
}

/** The JSON of a POST, PATCH, PUT or DELETE. Rejects with ApiError. */
export async function send(method, path, body) {
  const json = body === undefined ? {} : { body: JSON.stringify(body), type: "application/json" };
  return watched(asked(path, { method, ...json }));
}

/** A form with files by POST; `onProgress(sent, total)` in bytes. Rejects with ApiError. */
export function upload(path, form, onProgress = () => {}) {
  const request = new XMLHttpRequest(); // fetch tells no progress
  const done = new Promise((resolve, reject) => {
    request.upload.onprogress = (event) => event.lengthComputable && onProgress(event.loaded, event.total);
    request.onerror = () => reject(new ApiError(0, null, "gateway unreachable"));
    request.onload = () => {
      const found = parsed(request.responseText);
      if (request.status < 400) resolve(found);
      else reject(errorOf(request.status, found));
    };
  });
  request.open("POST", path);
  const key = currentKey();
  if (key) request.setRequestHeader(config.api_key_header, key);
  request.send(form);
  return watched(done);
}

/** Whether the gateway takes this key. Rejects with ApiError if it cannot tell. */
export async function tryKey(key) {
  try {
    await asked("/runs?limit=1", { key });
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.isDenied) return false;
    throw error;
  }
}

/** The headers that carry the key. */
export function keyHeaders(key = currentKey()) {
  return key ? { [config.api_key_header]: key } : {};
}

/** What an answer with an error status says. */
export function errorOf(status, found) {
  return new ApiError(status, found?.err_id ?? null, found?.detail ?? `HTTP ${status}`);
}

async function watched(promise) {
  const key = currentKey();
  try {
    return await promise;
  } catch (error) {
    if (error instanceof ApiError && error.isDenied) refused(key);
    throw error;
  }
}

async function asked(path, { method = "GET", body, type, signal, key } = {}) {
  let answer;
  try {
    const headers = { accept: "application/json", ...keyHeaders(key), ...(type ? { "content-type": type } : {}) };
    answer = await fetch(path, { method, body, signal, headers, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, null, "gateway unreachable");
  }
  const found = parsed(await answer.text());
  if (!answer.ok) throw errorOf(answer.status, found);
  return found;
}

function parsed(text) {
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    return { detail: text.slice(0, 500) };
  }
}
