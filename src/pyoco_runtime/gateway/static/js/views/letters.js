// The dead letters: what did not end well, why, and a second chance for it.

import { Time } from "../lib/format.js";
import { t } from "../lib/i18n.js";
import { Empty, Loading, Panel, Problem } from "../lib/parts.js";
import { go } from "../lib/router.js";
import { html, useState } from "../lib/ui.js";
import { DropQuestion, LetterActions } from "../letters/letter_actions.js";
import { LetterFacts } from "../letters/letter_facts.js";
import { useLetters } from "../letters/letter_list.js";
import { OneLetter } from "../letters/one_letter.js";
import { REASONS, reasonWord } from "../letters/reasons.js";
import { Choices } from "../live/choices.js";
import { ForAdmins } from "../live/for_admins.js";
import { RunLink } from "../live/run_link.js";
import { isForAdmins } from "../live/said.js";
import { StateBadge } from "../live/state_badge.js";

export default function Letters({ route }) {
  const [round, setRound] = useState(0);
  return html`
    <div>
      <h1>${t("ui.letters.title")}</h1>
      <p class="faint">${t("ui.letters.intro")}</p>
    </div>
    <${Panel} class="bare"
      ><${LetterPanel} key=${round} query=${route.query} onAgain=${() => setRound(round + 1)}
    /><//>
  `;
}

function LetterPanel({ query, onAgain }) {
  const list = useLetters(query.reason ?? "");
  const [dropping, setDropping] = useState(null);
  const [replayed, setReplayed] = useState({});
  if (isForAdmins(list.error)) return html`<${ForAdmins} view="letters" onAgain=${onAgain} />`;
  const acts = {
    replayed,
    onReplayed: (seq, run) => setReplayed((old) => ({ ...old, [seq]: [...(old[seq] ?? []), run] })),
    onDrop: setDropping,
    onGone: list.forget,
  };
  return html`
    <${Elsewhere} query=${query} letters=${list.letters} />
    <${Panel}>
      <div class="list-head">
        <${Choices} label=${t("ui.letters.filter")} path="/letters" query=${{ ...query, seq: "" }} name="reason"
          choices=${choices(list, query.reason)} />
      </div>
      ${list.error && html`<${Problem} error=${list.error} onRetry=${onAgain} />`}
      <${Found} list=${list} query=${query} acts=${acts} />
    <//>
    <${DropQuestion} letter=${dropping} onClose=${() => setDropping(null)} onGone=${list.forget} />
  `;
}

function choices({ counts, total }, chosen) {
  const there = REASONS.filter((reason) => counts[reason] > 0 || reason === chosen);
  return [
    { value: "", text: t("ui.letters.all"), count: total },
    ...there.map((reason) => ({ value: reason, text: reasonWord(reason), count: counts[reason] ?? 0 })),
  ];
}

/** A letter that the address names and the list does not hold. */
function Elsewhere({ query, letters }) {
  if (!query.seq || letters === null || letters.some((letter) => String(letter.seq) === query.seq)) return null;
  return html`<${Panel} title=${`#${query.seq}`}><${OneLetter} seq=${query.seq} /><//>`;
}

function Found({ list, query, acts }) {
  if (list.letters === null) return list.error ? null : html`<${Loading} />`;
  if (list.letters.length === 0) return html`<${NoLetters} isFiltered=${Boolean(query.reason)} />`;
  return html`
    <${LetterTable} letters=${list.letters} query=${query} acts=${acts} />
    ${list.hasOlder &&
    html`<p class="list-foot"><button type="button" onClick=${list.older}>${t("ui.letters.older")}</button></p>`}
  `;
}

function NoLetters({ isFiltered }) {
  if (isFiltered) return html`<${Empty} title=${t("ui.letters.empty_filter")} />`;
  return html`<${Empty} title=${t("ui.letters.empty")}>${t("ui.letters.empty_hint")}<//>`;
}

function LetterTable({ letters, query, acts }) {
  const heads = ["when", "reason", "flow", "run", "error"].map((name) => t(`ui.letters.${name}`));
  return html`
    <table class="cards letters">
      <thead>
        <tr>
          <th scope="col"><span class="visually-hidden">${t("ui.letters.seq")}</span></th>
          ${heads.map((head) => html`<th key=${head} scope="col">${head}</th>`)}
          <th scope="col"><span class="visually-hidden">${t("ui.letters.actions")}</span></th>
        </tr>
      </thead>
      <tbody>
        ${letters.map(
          (letter) => html`
            <${LetterRow} key=${letter.seq} letter=${letter} query=${query} heads=${heads} acts=${acts} />
          `,
        )}
      </tbody>
    </table>
  `;
}

function LetterRow({ letter, query, heads, acts }) {
  const { seq } = letter;
  const isOpen = query.seq === String(seq);
  const toggle = () => go("/letters", { ...query, seq: isOpen ? "" : seq }, { replace: true });
  return html`
    <tr class="letter" data-open=${isOpen}>
      <td class="letter-fold">
        <button type="button" class="fold quiet" aria-expanded=${isOpen} onClick=${toggle}
          aria-label=${t(isOpen ? "ui.letters.hide" : "ui.letters.show", { seq })}
          ><span aria-hidden="true">${isOpen ? "▾" : "▸"}</span></button>
      </td>
      <td data-label=${heads[0]} class="num nowrap"><${Time} at=${letter.timestamp} /></td>
      <td data-label=${heads[1]}><${StateBadge} status="error">${reasonWord(letter.reason)}<//></td>
      <td data-label=${heads[2]} class="long">${letter.flow_name ?? "–"}</td>
      <td data-label=${heads[3]}>${letter.run_id ? html`<${RunLink} run=${letter.run_id} />` : "–"}</td>
      <td data-label=${heads[4]} class="long letter-why">
        <span class="clamp" title=${letter.error}>${letter.error ?? "–"}</span>
      </td>
      <td class="card-actions">
        <${LetterActions} letter=${letter} replayed=${acts.replayed[seq]} onDrop=${acts.onDrop}
          onReplayed=${(run) => acts.onReplayed(seq, run)} onGone=${() => acts.onGone(seq)} />
      </td>
    </tr>
    ${isOpen && html`<tr class="letter-open"><td colspan="7"><${LetterFacts} letter=${letter} /></td></tr>`}
  `;
}
