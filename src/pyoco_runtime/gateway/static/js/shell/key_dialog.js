// The dialog that asks for an API key, and the way back to it.
import { tryKey } from "../lib/api.js";
import { t } from "../lib/i18n.js";
import { asked, currentKey, setKey } from "../lib/key.js";
import { Problem } from "../lib/parts.js";
import { html, useEffect, useRef, useState } from "../lib/ui.js";

/** The key dialog was closed without a key: a way back to it. */
export function KeyWanted() {
  const why = asked.use();
  const again = () => document.querySelector(".key-dialog").showModal();
  return why && html`<p class="banner">${t(`ui.shell.key.${why}`)}
    <button type="button" onClick=${again}>${t("ui.shell.key.enter")}</button></p>`;
}

export function KeyDialog() {
  const why = asked.use();
  const dialog = useRef(null);
  const { busy, problem, enter, forget } = useEntering();
  useEffect(() => {
    if (why && !dialog.current.open) dialog.current.showModal();
    if (!why && dialog.current.open) dialog.current.close();
    forget();
  }, [why]);
  return html`<dialog ref=${dialog} class="dialog key-dialog" aria-labelledby="key-title">
    <form onSubmit=${enter}>
      <h2 id="key-title">${t("ui.shell.key.title")}</h2>
      <p>${t(currentKey() ? "ui.shell.key.wrong" : "ui.shell.key.needed")}</p>
      <p class="faint">${t("ui.shell.key.where")}<br /><code>pyoco-server-admin api-key create --tenant …</code></p>
      <label for="key-input">${t("ui.shell.key.label")}</label>
      <input id="key-input" name="key" type="password" autocomplete="off" spellcheck=${false} required
        placeholder="pyoco_…" aria-describedby="key-problem" aria-invalid=${problem === "wrong"} />
      <div id="key-problem" role="alert">${problem === "wrong" && html`<p class="problem">${t("ui.shell.key.refused")}</p>`}
        ${problem && problem !== "wrong" && html`<${Problem} error=${problem} />`}</div>
      <div class="dialog-buttons">
        <button type="button" onClick=${() => dialog.current.close()}>${t("ui.shell.key.later")}</button>
        <button type="submit" class="primary" disabled=${busy}>${t("ui.shell.key.use")}</button>
      </div>
    </form>
  </dialog>`;
}

/** `problem` is null, "wrong", or the error that left it open whether the key is right. */
function useEntering() {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(null);
  const enter = async (event) => {
    event.preventDefault();
    const key = new FormData(event.target).get("key").trim();
    if (!key) return;
    setBusy(true);
    setProblem(null);
    try {
      if (!(await tryKey(key))) setProblem("wrong");
      else {
        event.target.reset();
        setKey(key);
      }
    } catch (error) {
      setProblem(error);
    } finally {
      setBusy(false);
    }
  };
  return { busy, problem, enter, forget: () => setProblem(null) };
}
