// The question before an actor is restarted, and the request.

import { send } from "../lib/api.js";
import { t } from "../lib/i18n.js";
import { Confirm, toast } from "../lib/parts.js";
import { html, useState } from "../lib/ui.js";
import { isForAdmins } from "../live/said.js";

const WARNINGS = { link: "ui.house.restart_link", nats: "ui.house.restart_nats", http: "ui.house.restart_http" };

/** `asked`: {process, actor} or null. */
export function RestartQuestion({ asked, onClose }) {
  const [needsAdmin, setNeedsAdmin] = useState(false);
  const close = () => {
    setNeedsAdmin(false);
    onClose();
  };
  const restart = async () => {
    const { process, actor } = asked;
    try {
      await send("POST", `/actors/${encodeURIComponent(process)}/${pathOf(actor)}/restart`);
    } catch (error) {
      if (isUnanswered(error, actor)) return;
      setNeedsAdmin(isForAdmins(error));
      throw error; // the dialog shows it
    }
    toast(t("ui.house.restart_done", { actor: actor.name }));
  };
  return html`
    <${Confirm} open=${asked !== null} title=${t("ui.house.restart_title")} confirm=${t("ui.house.restart")}
      onConfirm=${restart} onClose=${close}>
      ${asked && html`<${Text} ...${asked} />`}
      ${needsAdmin && html`<p class="refusal">${t("ui.house.not_admin")}</p>`}
    <//>
  `;
}

function Text({ process, actor }) {
  const warning = actor.supervisor ? "ui.house.restart_subtree" : WARNINGS[actor.name];
  return html`
    <p>${t("ui.house.restart_text", { actor: actor.path, process })}</p>
    ${warning && html`<p><strong>${t(warning)}</strong></p>`}
  `;
}

function pathOf(actor) {
  return actor.path.split("/").map(encodeURIComponent).join("/");
}

/** Who is asked to restart the gateway's own http may not get an answer. */
function isUnanswered(error, actor) {
  return error.status === 0 && /(^|\/)(http|gateway)$/.test(actor.path);
}
