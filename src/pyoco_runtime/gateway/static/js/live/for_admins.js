// What is shown instead of a view that only an admin's key opens.

import { t } from "../lib/i18n.js";
import { currentKey, setKey } from "../lib/key.js";
import { Empty, Panel } from "../lib/parts.js";
import { html } from "../lib/ui.js";

const WHY = { house: "ui.house.no_admin", letters: "ui.letters.no_admin" };

export function ForAdmins({ view, onAgain }) {
  const another = () => {
    setKey(null); // the next request is refused, and then the shell asks for a key
    onAgain();
  };
  return html`
    <${Panel}>
      <${Empty} title=${t("ui.shared.problem.admin")}>
        <p>${t(WHY[view])}</p>
        ${currentKey() &&
        html`<p class="list-foot">
          <button type="button" onClick=${another}>${t("ui.house.other_key")}</button>
        </p>`}
      <//>
    <//>
  `;
}
