// The banner that says what cannot be reached.
import { trouble } from "../lib/connection.js";
import { t } from "../lib/i18n.js";
import { html, useEffect, useState } from "../lib/ui.js";

const QUIET_MS = 1000; // a connection that is back within a second was not lost

/** What cannot be reached, as long as it cannot. */
export function Trouble() {
  const kind = trouble.use();
  const [shown, setShown] = useState(null);
  useEffect(() => {
    const timer = setTimeout(() => setShown(kind), kind === null ? 0 : QUIET_MS);
    return () => clearTimeout(timer);
  }, [kind]);
  return html`<div role="alert">${shown && html`<p class="banner">${t(`ui.shell.trouble.${shown}`)}</p>`}</div>`;
}
