// The house: the supervision tree of every process, with what crashed.

import { t } from "../lib/i18n.js";
import { Empty, Loading, Panel, Problem, toast } from "../lib/parts.js";
import { go } from "../lib/router.js";
import { html, useEffect, useRef, useState } from "../lib/ui.js";
import { newCrashes } from "../house/health.js";
import { Process } from "../house/process.js";
import { RestartQuestion } from "../house/restart.js";
import { ForAdmins } from "../live/for_admins.js";
import { useFollowed } from "../live/followed.js";
import { isForAdmins } from "../live/said.js";

export default function House({ route }) {
  const [round, setRound] = useState(0);
  return html`
    <div class="row spread">
      <div>
        <h1>${t("ui.house.title")}</h1>
        <p class="faint">${t("ui.house.intro")}</p>
      </div>
      <${OnlyTrouble} query=${route.query} />
    </div>
    <${Panel} class="bare"
      ><${Processes} key=${round} onlyTrouble=${route.query.only === "trouble"} onAgain=${() => setRound(round + 1)}
    /><//>
  `;
}

function OnlyTrouble({ query }) {
  const change = (event) => go("/house", { ...query, only: event.target.checked ? "trouble" : "" });
  return html`<label class="check">
    <input type="checkbox" checked=${query.only === "trouble"} onChange=${change} />${t("ui.house.only_trouble")}
  </label>`;
}

function Processes({ onlyTrouble, onAgain }) {
  const { records, error } = useFollowed("/actors/watch", { whole: "actors", one: "process", id: "process" });
  const [asked, setAsked] = useState(null);
  useCrashToasts(records);
  if (isForAdmins(error)) return html`<${ForAdmins} view="house" onAgain=${onAgain} />`;
  if (error) return html`<${Problem} error=${error} onRetry=${onAgain} />`;
  if (records === null) return html`<${Loading} />`;
  if (records.size === 0) return html`<${NoProcess} />`;
  const reports = [...records.values()].sort((a, b) => (a.process < b.process ? -1 : 1));
  return html`
    ${reports.map(
      (report) => html`
        <${Panel} key=${report.process} title=${report.process}>
          <${Process} report=${report} onlyTrouble=${onlyTrouble} onRestart=${setAsked} />
        <//>
      `,
    )}
    <${RestartQuestion} asked=${asked} onClose=${() => setAsked(null)} />
  `;
}

function NoProcess() {
  return html`<${Panel}><${Empty} title=${t("ui.house.empty")}>${t("ui.house.empty_hint")}<//><//>`;
}

/** Say each new crash once; what had crashed before the page was opened is only shown. */
function useCrashToasts(records) {
  const seen = useRef(new Map());
  useEffect(() => {
    for (const [name, report] of records ?? []) {
      const before = seen.current.get(name);
      seen.current.set(name, report);
      if (before && before !== report) newCrashes(before.tree, report.tree).forEach(tell);
    }
  });
}

function tell(actor) {
  toast(t("ui.house.crashed", { actor: actor.name, type: actor.last_crash.type }));
}
