// The pieces that every view is made of.
import { get, stream } from "./api.js";
import { has, t } from "./i18n.js";
import { signal } from "./signal.js";
import { Component, html, useEffect, useRef, useState } from "./ui.js";

/** A section with a title. What fails inside is shown inside, and can be drawn again; the others stay. */
export class Panel extends Component {
  constructor() {
    super();
    this.state = { error: null };
  }

  static getDerivedStateFromError(error) {
    return { error };
  }

  componentDidCatch(error) {
    console.error(error);
  }

  render({ title, actions, children, class: name = "" }, { error }) {
    const again = () => this.setState({ error: null });
    return html`<section class="panel ${name}" aria-label=${title}>
      ${(title || actions) && html`<header class="panel-head"><h2>${title}</h2>${actions}</header>`}
      ${error ? html`<${Problem} error=${error} onRetry=${again} />` : children}
    </section>`;
  }
}

/** A status as a word and a colour; `of` says whose: "status" (a run's), "task" or "worker". */
export function Badge({ status, of }) {
  return html`<span class="badge" data-status=${status}><span class="dot" aria-hidden="true"></span
    >${statusWord(status, of)}</span>`;
}

/** The word for a status; the status itself if the catalogue has none. */
export function statusWord(status, of = "status") {
  const found = [of, "status", "task", "worker"].map((whose) => `ui.shared.${whose}.${status}`).find(has);
  return found ? t(found) : String(status);
}

/** Why there is nothing to see, and what to do about it. */
export function Empty({ title, children }) {
  return html`<div class="empty"><p class="empty-title">${title}</p>${children && html`<div>${children}</div>`}</div>`;
}

/** Something is on its way; said only if it takes a while. */
export function Loading() {
  return html`<p class="loading" role="status">${t("ui.shell.loading")}</p>`;
}

/** What went wrong, in the viewer's language if the catalogue knows it, and in the gateway's own words. */
export function Problem({ error, onRetry }) {
  const said = problemText(error);
  const detail = error?.message ?? String(error);
  return html`<div class="problem" role="alert">
    <p><strong>${said}</strong></p>
    ${detail !== said && html`<p class="problem-detail">${detail} ${error?.errId ? html`<code>${error.errId}</code>` : ""}</p>`}
    ${onRetry && html`<button type="button" onClick=${onRetry}>${t("ui.shell.retry")}</button>`}
  </div>`;
}

/** One sentence for an error. */
export function problemText(error) {
  if (error?.status === 0) return t("ui.shell.gateway_unreachable");
  if (error?.errId) return t("ui.shell.refused", { id: error.errId });
  return error?.name === "ApiError" ? t("ui.shell.refused", { id: `HTTP ${error.status}` }) : t("ui.shell.panel_failed");
}

/** A question with a dangerous answer. `open` shows it; `onConfirm` may be async, its error is shown in the dialog. */
export function Confirm({ open, title, children, confirm, danger = true, onConfirm, onClose }) {
  const dialog = useRef(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  useEffect(() => {
    if (open && !dialog.current.open) dialog.current.showModal();
    if (!open && dialog.current.open) dialog.current.close();
    if (open) setError(null);
  }, [open]);
  const yes = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await onConfirm();
      onClose();
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  };
  return html`<dialog ref=${dialog} class="dialog" aria-label=${title} onClose=${onClose}>
    ${open && html`<form onSubmit=${yes}>
      <h2>${title}</h2>
      <div class="dialog-body">${children}</div>
      ${error && html`<${Problem} error=${error} />`}
      <div class="dialog-buttons">
        <button type="button" onClick=${onClose}>${t("ui.shell.no")}</button>
        <button type="submit" class=${danger ? "danger" : "primary"} disabled=${busy}>${confirm}</button>
      </div>
    </form>`}
  </dialog>`;
}

/** A button that copies `text`. */
export function Copy({ text, label }) {
  const [done, setDone] = useState(false);
  useEffect(() => {
    if (!done) return undefined;
    const timer = setTimeout(() => setDone(false), 1500);
    return () => clearTimeout(timer);
  }, [done]);
  const copy = async (event) => {
    event.preventDefault();
    event.stopPropagation();
    setDone(await copied(text));
  };
  const name = label ? t("ui.shell.copy_what", { what: label }) : t("ui.shell.copy");
  return html`<button type="button" class="copy" data-done=${done} aria-label=${name} title=${name} onClick=${copy}
    ><${CopyIcon} done=${done} /><span class="visually-hidden" role="status">${done ? t("ui.shell.copied") : ""}</span></button>`;
}

// drawn, because not every font has such a sign
function CopyIcon({ done }) {
  const shape = done ? "M3 8.5 6.5 12 13 4.5" : "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3";
  return html`<svg width="16" height="16" viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.4"
    stroke-linejoin="round" aria-hidden="true"><path d=${shape} /></svg>`;
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copiedByHand(text); // plain http on another machine has no clipboard API
  }
}

function copiedByHand(text) {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "visually-hidden";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

const toasts = signal([]);
let toastId = 0;

/** Say something for a few seconds. */
export function toast(text) {
  toastId += 1;
  const mine = { id: toastId, text };
  toasts.write([...toasts.read().slice(-2), mine]);
  setTimeout(() => toasts.write(toasts.read().filter((each) => each !== mine)), 5000);
}

/** Where toasts appear; the shell has one. */
export function Toasts() {
  const shown = toasts.use();
  return html`<div class="toasts" role="status">${shown.map((each) => html`<p key=${each.id}>${each.text}</p>`)}</div>`;
}

/**
 * Follow an event stream while the component is there: returns "connecting", "open", "lost", "denied", "failed" or
 * "over"; `onState(state, error)` has an error if it is for the view to show (see stream.js). Both may change from
 * drawing to drawing; the stream is opened anew only for another `path` (null: none).
 */
export function useStream(path, { onEvent, onState, lastEventId } = {}) {
  const [state, setState] = useState("connecting");
  const latest = useRef();
  latest.current = { onEvent, onState };
  useEffect(() => {
    if (path === null) return undefined;
    setState("connecting");
    return stream(path, {
      lastEventId,
      onEvent: (event) => latest.current.onEvent?.(event),
      onState: (next, error) => {
        setState(next);
        latest.current.onState?.(next, isToBeShown(next) ? error : undefined);
      },
    });
  }, [path]);
  return state;
}

function isToBeShown(state) {
  return state === "failed" || state === "over";
}

/** GET once: `{data, error, reload()}`. After `reload()` the old data stays until the new is there. */
export function useLoad(path) {
  const [found, setFound] = useState({ path, data: null, error: null });
  const [round, setRound] = useState(0);
  useEffect(() => {
    const wanted = new AbortController();
    const failed = (error) => setFound((old) => ({ path, data: old.path === path ? old.data : null, error }));
    get(path, { signal: wanted.signal }).then(
      (data) => setFound({ path, data, error: null }),
      (error) => error.name === "AbortError" || failed(error),
    );
    return () => wanted.abort();
  }, [path, round]);
  const mine = found.path === path ? found : { data: null, error: null };
  return { data: mine.data, error: mine.error, reload: () => setRound((n) => n + 1) };
}
