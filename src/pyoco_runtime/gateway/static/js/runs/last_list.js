// The filters of the list that was looked at last: the way back from a run leads there.
import { signal } from "../lib/signal.js";

export const lastList = signal({});
