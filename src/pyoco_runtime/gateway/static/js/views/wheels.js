// The wheels: what is in the store, upload, delete, and who did it.

import { send } from "../lib/api.js";
import { Time, bytes } from "../lib/format.js";
import { t } from "../lib/i18n.js";
import { Confirm, Copy, Empty, Loading, Panel, Problem, toast, useLoad } from "../lib/parts.js";
import { html, useEffect, useState } from "../lib/ui.js";
import { DropZone } from "../wheels/drop_zone.js";
import { History } from "../wheels/history.js";
import { UploadList } from "../wheels/upload_list.js";
import { stored } from "../wheels/uploads.js";
import { WheelTags } from "../wheels/wheel_tags.js";

export default function Wheels({ route }) {
  const [round, again] = useRounds();
  const reload = html`<button type="button" class="quiet" onClick=${again}>${t("ui.wheels.reload")}</button>`;
  return html`
    <h1>${t("ui.wheels.title")}</h1>
    <${Panel} title=${t("ui.wheels.upload")}><${DropZone} /><${UploadList} /><//>
    <${Panel} title=${t("ui.wheels.list")} actions=${reload}><${Store} round=${round} onChange=${again} /><//>
    <${Panel} title=${t("ui.wheels.history")}><${History} query=${route.query} round=${round} /><//>
  `;
}

/** Grows when the store may have changed: an upload of ours, a deletion, or the viewer comes back to this tab. */
function useRounds() {
  const [asked, setAsked] = useState(0);
  const uploaded = stored.use();
  const again = () => setAsked((n) => n + 1);
  useEffect(() => {
    const looked = () => document.hidden || again();
    document.addEventListener("visibilitychange", looked);
    return () => document.removeEventListener("visibilitychange", looked);
  }, []);
  return [asked + uploaded, again];
}

function Store({ round, onChange }) {
  const { data, error, reload } = useLoad("/wheels");
  const [asked, setAsked] = useState(null);
  useEffect(() => {
    if (round > 0) reload();
  }, [round]);
  if (error && data === null) return html`<${Problem} error=${error} onRetry=${reload} />`;
  if (data === null) return html`<${Loading} />`;
  return html`
    ${data.length
      ? html`<${WheelTable} wheels=${data} onDelete=${setAsked} />`
      : html`<${Empty} title=${t("ui.wheels.empty")}>${t("ui.wheels.empty_hint")}<//>`}
    <${DeleteQuestion} name=${asked} onClose=${() => setAsked(null)} onDone=${onChange} />
  `;
}

function WheelTable({ wheels, onDelete }) {
  const heads = ["name", "size", "tags", "uploaded", "sha256"].map((name) => t(`ui.wheels.${name}`));
  return html`
    <table class="cards wheels">
      <thead>
        <tr>
          ${heads.map((head) => html`<th key=${head} scope="col">${head}</th>`)}
          <th scope="col"><span class="visually-hidden">${t("ui.wheels.actions")}</span></th>
        </tr>
      </thead>
      <tbody>
        ${wheels.map(
          (wheel) => html`<${WheelRow} key=${wheel.name} wheel=${wheel} heads=${heads} onDelete=${onDelete} />`,
        )}
      </tbody>
    </table>
  `;
}

function WheelRow({ wheel, heads, onDelete }) {
  return html`
    <tr>
      <th scope="row" class="card-title"><span class="mono">${wheel.name}</span></th>
      <td data-label=${heads[1]} class="num nowrap">${bytes(wheel.size_bytes)}</td>
      <td data-label=${heads[2]}><${WheelTags} tags=${wheel.tags} /></td>
      <td data-label=${heads[3]} class="num nowrap"><${Time} at=${wheel.modified} /></td>
      <td data-label=${heads[4]} class="nowrap"><${Sha} sha=${wheel.sha256_hex} /></td>
      <td class="card-actions">
        <button type="button" class="quiet" aria-label=${t("ui.wheels.delete_label", { name: wheel.name })}
          onClick=${() => onDelete(wheel.name)}>${t("ui.wheels.delete")}</button>
      </td>
    </tr>
  `;
}

function Sha({ sha }) {
  if (!sha) return html`<span class="faint">–</span>`;
  return html`<div>
    <span class="mono" title=${sha}>${sha.slice(0, 12)}…</span>${" "}<${Copy} text=${sha} label="SHA-256" />
  </div>`;
}

function DeleteQuestion({ name, onClose, onDone }) {
  const remove = async () => {
    try {
      await send("DELETE", `/wheels/${encodeURIComponent(name)}`);
      toast(t("ui.wheels.delete_done", { name }));
    } catch (error) {
      if (error.status !== 404) throw error; // the dialog shows it
      toast(t("ui.wheels.delete_gone", { name }));
    }
    onDone();
  };
  return html`
    <${Confirm} open=${name !== null} title=${t("ui.wheels.delete_title")} confirm=${t("ui.wheels.delete")}
      onConfirm=${remove} onClose=${onClose}>
      <p>${name && t("ui.wheels.delete_text", { name })}</p>
    <//>
  `;
}
