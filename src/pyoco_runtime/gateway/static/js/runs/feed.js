// The list of runs, loaded by cursor and kept up to date from its stream.
import { get, stream } from "../lib/api.js";
import { href } from "../lib/router.js";
import { useEffect, useReducer, useRef } from "../lib/ui.js";
import { NONE, changedInPlace, sorted, withFresh, withPage, withoutGone } from "./run_rows.js";

const PAGE = 100; // rows a request
const LIVE_MOST = 1000; // rows that come in by themselves before the list is loaded anew
const READ_MOST = 3000; // rows that a reader scrolls through before "older runs" begins a new list
const SCAN_MOST = 2000; // runs that one search looks through
const HELD_MOST = 999; // new runs that wait for the reader to look up
const BATCH_MS = 250; // changes are drawn four times a second, however many come

/**
 * The feed of `query` ({status, flow, tag, q, after}) for a component:
 * {rows, isLoaded, hasMore, isFull, partial, scanned, held, error, more(), show(), hold(reason, on), put(run)}.
 */
export function useFeed(query, onNews) {
  const [, redraw] = useReducer((n) => n + 1, 0);
  const feed = useRef(null);
  const key = JSON.stringify([query.status, query.flow, query.tag, query.q, query.after]);
  if (feed.current?.key !== key) {
    feed.current?.stop();
    feed.current = new Feed(key, query, redraw);
  }
  feed.current.onNews = onNews;
  useEffect(() => {
    feed.current.start();
  }, [key]);
  useEffect(() => () => feed.current.stop(), []);
  return feed.current;
}

let left = null; // the list that was looked at last, for who comes back to it

class Feed {
  constructor(key, query, redraw) {
    Object.assign(this, { key, query, redraw, onNews: () => {}, error: null, streamError: null, scanned: 0 });
    const isBack = left?.key === key;
    this.list = isBack ? left.list : NONE;
    this.lastId = isBack ? left.lastId : null; // what has happened since is told by the stream
    this.scrollY = isBack ? left.scrollY : 0; // where to begin
    this.seenY = 0; // where the reader is
    this.waiting = new Map(); // changes that are not drawn yet
    this.fresh = new Map(); // new runs that wait until the reader looks up
    this.holds = new Set();
    this.stopped = new AbortController();
    this.loading = false;
    this.isStale = false; // to be loaded anew once the page that is on its way is here
    this.timer = null;
  }

  get rows() {
    return this.list.rows;
  }

  get isLoaded() {
    return this.list.cursor !== undefined && !(this.loading && this.rows.length === 0);
  }

  get hasMore() {
    return Boolean(this.list.cursor);
  }

  get isFull() {
    return this.rows.length >= READ_MOST;
  }

  get partial() {
    return this.list.partial;
  }

  /** How many new runs wait to be shown. */
  get held() {
    return this.fresh.size;
  }

  get heldIsMore() {
    return this.fresh.size >= HELD_MOST;
  }

  start() {
    // the stream first, then the list: nothing falls between the two
    const path = `/runs/watch${this._query({})}`;
    this.close = stream(path, {
      lastEventId: this.lastId,
      onEvent: (event) => this._take(event),
      onState: (state, error) => this._hear(state, error),
    });
    if (this.list === NONE) this._load();
  }

  stop() {
    if (this.lastId !== null && this.isLoaded && !this.query.q) {
      left = { key: this.key, list: withoutGone(this.list), lastId: this.lastId, scrollY: this.seenY };
    }
    this.stopped.abort();
    this.close?.();
    clearTimeout(this.timer);
  }

  /** The next page, if there is one and it is wanted. */
  more() {
    if (!this.loading && this.hasMore && !this.isFull && !this.error) this._load();
  }

  /** Load the list anew, with what waits at its top. */
  show() {
    this.error = null;
    this._load({ anew: true });
  }

  /** Look through the next runs, when a search has stopped. */
  searchOn() {
    this.scanned = 0;
    this._load();
  }

  /** Somebody is reading (or no more): new rows wait, rows that are gone stay. */
  hold(reason, isOn) {
    if (isOn) this.holds.add(reason);
    else this.holds.delete(reason);
    if (!isOn && this.holds.size === 0) this._settle();
  }

  /** A run as an answer has shown it. */
  put(run) {
    this._apply(); // the stream may have brought a newer state before the answer came: that one stays
    this.waiting.set(run.run_id, run);
    this._apply();
  }

  async _load({ anew = false } = {}) {
    this.isStale ||= anew;
    if (this.loading) return;
    this.loading = true;
    try {
      do {
        const isFirst = this.isStale;
        this.isStale = false;
        await this._page(isFirst);
      } while (this.isStale || this._isSearchUnfinished());
    } catch (error) {
      if (error.name === "AbortError") return;
      this.error = error;
    } finally {
      this.loading = false;
    }
    if (!this.stopped.signal.aborted) this.redraw();
  }

  async _page(anew) {
    const cursor = anew ? undefined : this.list.cursor;
    // updated_after asks for the form of the answer that has a cursor
    const place = cursor ?? this.query.after ?? null;
    const from = place ? { cursor: place } : { updated_after: "-1" };
    const limit = this.query.q ? 200 : PAGE;
    const page = await get(`/runs${this._query({ limit, ...from })}`, { signal: this.stopped.signal });
    this.scanned += page.items.length;
    if (anew) {
      this.fresh.clear();
      this.scanned = page.items.length;
    }
    const items = page.items.filter((run) => this._isWanted(run));
    this.list = withPage(anew ? NONE : this.list, { ...page, items });
    this._apply();
  }

  _isSearchUnfinished() {
    return Boolean(this.query.q) && this.hasMore && this.scanned < SCAN_MOST && this.rows.length < PAGE;
  }

  _isWanted(run) {
    return !this.query.q || run.run_id.toLowerCase().includes(this.query.q.toLowerCase());
  }

  _query(more) {
    const { status, flow, tag } = this.query;
    return href("", { status, flow, tag, ...more }).slice(1);
  }

  /** A list that does not follow says so. */
  _hear(state, error) {
    const problem = state === "failed" || state === "over" ? error : null;
    if (problem === this.streamError) return;
    this.streamError = problem;
    this.redraw();
  }

  _take({ id, event, data }) {
    this.lastId = id ?? this.lastId;
    if (event === "run") this.waiting.set(data.run_id, this._isWanted(data) ? data : null);
    else if (event === "gone") this.waiting.set(data.run_id, null);
    else if (event === "dropped") this.show();
    else return;
    this.onNews();
    this.timer ??= setTimeout(() => this._apply(), BATCH_MS);
  }

  _apply() {
    clearTimeout(this.timer);
    this.timer = null;
    if (this.list.cursor === undefined) return; // the first page is on its way: what waits is drawn with it
    const { inPlace, fresh } = sorted(this.list, this.waiting);
    for (const [id, run] of this.waiting) if (run === null) this.fresh.delete(id);
    this.waiting.clear();
    this.list = changedInPlace(this.list, inPlace, { keepGone: this.holds.size > 0 });
    for (const id of inPlace.keys()) this.fresh.delete(id);
    if (!this.query.after) for (const [id, run] of fresh) this._hold(id, run);
    if (this.holds.size === 0) this._settle();
    else this.redraw();
  }

  _hold(id, run) {
    if (this.fresh.has(id) || this.fresh.size < HELD_MOST) this.fresh.set(id, run);
  }

  /** Nobody reads: everything goes to its place. */
  _settle() {
    if (this.fresh.size > 0 && this.rows.length + this.fresh.size > LIVE_MOST) {
      this.show(); // too many to be put in one by one
      return;
    }
    this.list = withoutGone(withFresh(this.list, this.fresh));
    this.fresh.clear();
    this.redraw();
  }
}
