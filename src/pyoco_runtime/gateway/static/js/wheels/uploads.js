// The uploads of this tab, one after the other. They go on while another view is shown.

import { ApiError, upload } from "../lib/api.js";
import { signal } from "../lib/signal.js";

const WHEEL_NAME = /^[^-\s]+-[^-\s]+(-\d[^-\s]*)?-[^-\s]+-[^-\s]+-[^-\s]+\.whl$/;
const OVER = new Set(["done", "failed"]);

/** [{id, file, tags, state: "waiting" | "sending" | "storing" | "done" | "failed", sent, total, error}] */
export const uploads = signal([]);
/** Grows with every upload that went well. */
export const stored = signal(0);

let lastId = 0;
let isBusy = false;

/** Upload these files, for workers with these tags (with commas between). */
export function add(files, tags) {
  const more = [...files].map((file) => {
    lastId += 1;
    const isWheel = WHEEL_NAME.test(file.name);
    const error = isWheel ? null : { kind: "not_a_wheel" };
    return { id: lastId, file, tags, state: isWheel ? "waiting" : "failed", sent: 0, total: file.size, error };
  });
  uploads.write([...uploads.read(), ...more]);
  work();
}

/** One that failed, once more. */
export function again(id) {
  change(id, { state: "waiting", sent: 0, error: null });
  work();
}

/** Forget those that are over. */
export function clear() {
  uploads.write(uploads.read().filter((each) => !OVER.has(each.state)));
}

async function work() {
  if (isBusy) return;
  isBusy = true;
  window.addEventListener("beforeunload", stay);
  for (let next = waiting(); next; next = waiting()) await sendOne(next);
  window.removeEventListener("beforeunload", stay);
  isBusy = false;
}

function waiting() {
  return uploads.read().find((each) => each.state === "waiting");
}

async function sendOne({ id, file, tags }) {
  const form = new FormData();
  form.append("tags", tags);
  form.append("wheel", file, file.name);
  change(id, { state: "sending" });
  const onProgress = (sent, total) => change(id, { sent, total, state: sent < total ? "sending" : "storing" });
  try {
    await upload("/wheels", form, onProgress);
    change(id, { state: "done" });
    stored.write(stored.read() + 1);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    change(id, { state: "failed", error: errorOf(error, file) });
  }
}

/** What went wrong, as data: the words are the view's. */
function errorOf(error, file) {
  const most = Number(/at most (\d+) bytes/.exec(error.message)?.[1] ?? 0);
  if (error.status === 0) return { kind: "broken", canRetry: true };
  if (error.status === 409) return { kind: "conflict", detail: error.message };
  if (error.status === 413) return { kind: "too_large", size: file.size, most };
  if (error.trouble === "nats") return { kind: "nats_away", canRetry: true };
  return { kind: "refused", cause: error, canRetry: true };
}

function change(id, news) {
  uploads.write(uploads.read().map((each) => (each.id === id ? { ...each, ...news } : each)));
}

function stay(event) {
  event.preventDefault(); // the browser asks whether to leave while something is being uploaded
}
