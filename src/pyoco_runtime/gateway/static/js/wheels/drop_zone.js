// Where wheels come in: dropped anywhere on the page while this is shown, or chosen with the button.

import { t } from "../lib/i18n.js";
import { html, useEffect, useRef, useState } from "../lib/ui.js";
import { add } from "./uploads.js";

export function DropZone() {
  const [tags, setTags] = useState("");
  const picker = useRef(null);
  const isOver = useDrop((files) => add(files, tags));
  const picked = (event) => {
    add(event.target.files, tags);
    event.target.value = ""; // the same file may be chosen again
  };
  return html`
    <div class="drop-zone" data-over=${isOver}>
      <p class="drop-text">
        ${isOver ? t("ui.wheels.drop_now") : t("ui.wheels.drop")}${" "}
        <button type="button" class="primary" onClick=${() => picker.current.click()}>${t("ui.wheels.choose")}</button>
      </p>
      <input ref=${picker} class="visually-hidden" type="file" accept=".whl" multiple tabindex="-1" aria-hidden="true"
        onChange=${picked} />
      <div class="drop-tags">
        <label for="wheel-tags">${t("ui.wheels.tags_label")}</label>
        <input id="wheel-tags" value=${tags} placeholder="default,gpu" autocomplete="off" spellcheck=${false}
          aria-describedby="wheel-tags-hint" onInput=${(event) => setTags(event.target.value)} />
        <span id="wheel-tags-hint" class="faint">${t("ui.wheels.tags_hint")}</span>
      </div>
    </div>
  `;
}

/** Whether files are held over the page. `onFiles` gets what is dropped; the browser does not open it instead. */
function useDrop(onFiles) {
  const [isOver, setIsOver] = useState(false);
  const latest = useRef();
  latest.current = onFiles;
  useEffect(() => {
    const over = (event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      setIsOver(true);
    };
    const leave = (event) => event.relatedTarget === null && setIsOver(false);
    const drop = (event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      setIsOver(false);
      latest.current(event.dataTransfer.files);
    };
    window.addEventListener("dragover", over);
    window.addEventListener("dragleave", leave);
    window.addEventListener("drop", drop);
    return () => {
      window.removeEventListener("dragover", over);
      window.removeEventListener("dragleave", leave);
      window.removeEventListener("drop", drop);
    };
  }, []);
  return isOver;
}
