// Why there are dead letters, in words.

import { t } from "../lib/i18n.js";

/** All reasons that the gateway knows, the commonest first. */
export const REASONS = [
  "execution_error",
  "flow_not_found",
  "invalid_job",
  "max_deliver_exceeded",
  "orphaned_job",
  "lost_job",
];

/** A reason that we do not know stays as it is. */
export function reasonWord(reason) {
  return REASONS.includes(reason) ? t(`ui.letters.reason_${reason}`) : reason;
}

/** What happened, and what to do about it; null if we do not know the reason. */
export function reasonHint(reason) {
  return REASONS.includes(reason) ? t(`ui.letters.hint_${reason}`) : null;
}
