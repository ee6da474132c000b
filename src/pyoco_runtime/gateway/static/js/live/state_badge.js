// A state as a word and a colour, where the word is the view's own.

import { html } from "../lib/ui.js";

export function StateBadge({ status, children, title }) {
  return html`<span class="badge" data-status=${status} title=${title}
    ><span class="dot" aria-hidden="true"></span>${children}</span
  >`;
}
