// The way to a run, by the beginning of its id; the whole id on hover.

import { href } from "../lib/router.js";
import { html } from "../lib/ui.js";

export function RunLink({ run, prefix = "" }) {
  const place = href(`/runs/${encodeURIComponent(run)}`);
  return html`<a class="mono nowrap" href=${place} title=${run}>${prefix}${run.slice(0, 8)}</a>`;
}
