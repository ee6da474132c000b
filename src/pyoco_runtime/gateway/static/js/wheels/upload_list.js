// How the uploads of this tab are doing.

import { bytes } from "../lib/format.js";
import { t } from "../lib/i18n.js";
import { html } from "../lib/ui.js";
import { said } from "../live/said.js";
import { StateBadge } from "../live/state_badge.js";
import { again, clear, uploads } from "./uploads.js";

export function UploadList() {
  const all = uploads.use();
  if (all.length === 0) return null;
  const isOver = all.every((each) => each.state === "done" || each.state === "failed");
  return html`
    <section class="uploads" aria-label=${t("ui.wheels.queue")}>
      <ul class="plain">
        ${all.map((each) => html`<${Upload} key=${each.id} upload=${each} />`)}
      </ul>
      ${isOver && html`<button type="button" class="quiet" onClick=${clear}>${t("ui.wheels.clear")}</button>`}
    </section>
  `;
}

function Upload({ upload }) {
  return html`
    <li class="upload" data-state=${upload.state}>
      <div class="row spread">
        <span class="mono">${upload.file.name}</span>
        <${Standing} upload=${upload} />
      </div>
      ${(upload.state === "sending" || upload.state === "storing") &&
      html`<progress max=${upload.total || 1} value=${upload.sent}
        aria-label=${t("ui.wheels.progress_label", { name: upload.file.name })}></progress>`}
      ${upload.error && html`<${Failure} upload=${upload} />`}
    </li>
  `;
}

function Standing({ upload }) {
  switch (upload.state) {
    case "done":
      return html`<${StateBadge} status="ok">${t("ui.wheels.done")}<//>`;
    case "failed":
      return html`<${StateBadge} status="error">${t("ui.shared.status.FAILED")}<//>`;
    case "sending":
      return html`<span class="num faint">
        ${t("ui.wheels.sending", { done: bytes(upload.sent), total: bytes(upload.total) })}
      </span>`;
    case "storing":
      return html`<span class="faint">${t("ui.wheels.storing")}</span>`;
    default:
      return html`<span class="faint">${t("ui.wheels.waiting")}</span>`;
  }
}

function Failure({ upload }) {
  const { error, file, id } = upload;
  return html`
    <div class="upload-error" role="alert">
      <p>${words(error)}</p>
      ${error.detail && html`<p class="under">${error.detail}</p>`}
      ${error.canRetry &&
      html`<button type="button" onClick=${() => again(id)}
        aria-label=${t("ui.wheels.again_label", { name: file.name })}>${t("ui.wheels.again")}</button>`}
    </div>
  `;
}

function words(error) {
  switch (error.kind) {
    case "not_a_wheel":
      return t("ui.wheels.not_a_wheel");
    case "conflict":
      return t("ui.wheels.conflict");
    case "too_large":
      return error.most
        ? t("ui.wheels.too_large", { size: bytes(error.size), most: bytes(error.most) })
        : t("ui.wheels.too_large_unknown", { size: bytes(error.size) });
    case "nats_away":
      return t("ui.wheels.nats_away");
    case "broken":
      return t("ui.wheels.broken");
    default:
      return t("ui.wheels.refused", { problem: said(error.cause) });
  }
}
