// Links that choose what a list shows; the choice is in the address.

import { count } from "../lib/format.js";
import { href } from "../lib/router.js";
import { html } from "../lib/ui.js";

/** `choices`: [{value, text, count?}]; `value` "" is all of them. Goes to `path` with `query[name]` set. */
export function Choices({ label, path, query, name, choices }) {
  const chosen = query[name] ?? "";
  return html`
    <nav class="choices" aria-label=${label}>
      ${choices.map(
        (each) => html`
          <a key=${each.value} href=${href(path, { ...query, [name]: each.value })}
            aria-current=${each.value === chosen ? "true" : null}>
            ${each.text}${" "}${each.count !== undefined && html`<span class="num">${count(each.count)}</span>`}
          </a>
        `,
      )}
    </nav>
  `;
}
