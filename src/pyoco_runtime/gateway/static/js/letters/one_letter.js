// A dead letter by its number, for an address that names one which is not in the list (any more).

import { Loading, Problem, useLoad } from "../lib/parts.js";
import { html } from "../lib/ui.js";
import { LetterFacts } from "./letter_facts.js";

export function OneLetter({ seq }) {
  const { data, error, reload } = useLoad(`/dlq/${encodeURIComponent(seq)}`);
  if (error) return html`<${Problem} error=${error} onRetry=${reload} />`;
  return data === null ? html`<${Loading} />` : html`<${LetterFacts} letter=${data} />`;
}
