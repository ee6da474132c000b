// An error in one sentence for a person: the catalogue's text, and what the gateway adds to it.

import { has, t } from "../lib/i18n.js";
import { problemText } from "../lib/parts.js";

const NOT_ADMIN = "ERR-PYOCO-0039";

export function said(error) {
  const known = error?.errId?.replace("ERR-", "MSG-");
  if (!known || !has(known)) return problemText(error);
  return `${t(known)} (${error.message})`;
}

/** The key is right, but this is for admins. */
export function isForAdmins(error) {
  return error?.errId === NOT_ADMIN;
}
