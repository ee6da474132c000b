// The list of runs.
import { count } from "../lib/format.js";
import { t } from "../lib/i18n.js";
import { Empty, Loading, Panel, Problem } from "../lib/parts.js";
import { href } from "../lib/router.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../lib/ui.js";
import { CancelDialog } from "../runs/cancel.js";
import { useStats } from "../runs/counts.js";
import { useFeed } from "../runs/feed.js";
import { FilterBar } from "../runs/filter_bar.js";
import { lastList } from "../runs/last_list.js";
import { RunRow } from "../runs/run_row.js";
import { windowOf } from "../runs/run_rows.js";

const COLUMNS = ["status", "flow", "tag", "worker", "started", "duration", "error", "action"];
const NARROW = window.matchMedia("(max-width: 900px)");
const ROW_PX = { wide: 44, narrow: 116 }; // as in runs.css
const NEAR_PX = 1200; // this close to the end the next page is asked for

export default function Runs({ route }) {
  const { query } = route;
  const [stats, look] = useStats();
  const feed = useFeed(query, look);
  const [asking, setAsking] = useState(null);
  useEffect(() => lastList.write(query), [query]);
  const flows = (stats?.flows ?? []).map((each) => each.flow).filter((name) => name !== "(other)");
  const tags = (stats?.queue ?? []).map((each) => each.tag);
  return html`<h1 class="visually-hidden">${t("ui.runs.title")}</h1>
    <${FilterBar} query=${query} counts=${stats?.counts ?? null} flows=${flows} tags=${tags} />
    <${Panel} class="runs-panel">
      <${Notices} feed=${feed} query=${query} />
      <${Table} feed=${feed} onCancel=${setAsking} />
      <${End} feed=${feed} query=${query} />
    <//>
    <${CancelDialog} run=${asking} onDone=${(snapshot) => feed.put(snapshot)} onClose=${() => setAsking(null)} />`;
}

/** What the reader should know before reading. The new runs' button floats: it moves nothing. */
function Notices({ feed, query }) {
  const up = () => {
    window.scrollTo({ top: 0 });
    feed.show();
  };
  const more = feed.heldIsMore ? `${count(feed.held)}+` : count(feed.held);
  return html`
    <div class="held" role="status">${feed.held > 0 && html`<button type="button" class="primary" onClick=${up}>↑ ${
      t("ui.runs.new", { n: more })}</button>`}</div>
    ${feed.streamError && !feed.error && html`<${Problem} error=${feed.streamError} />`}
    ${feed.partial && html`<p class="notice">${t("ui.runs.partial")}</p>`}
    ${query.after && html`<p class="notice">${t("ui.runs.older_shown")} <a href=${href("/runs", { ...query, after: null })}>${
      t("ui.runs.newest")}</a></p>`}
    ${/^[0-9a-f]{8}-[0-9a-f-]{27}$/i.test(query.q ?? "") && html`<p class="notice"><a href=${href(`/runs/${query.q}`)}>${
      t("ui.runs.open_id")}</a></p>`}`;
}

function Table({ feed, onCancel }) {
  const body = useRef(null);
  const rowPx = useRowPx();
  const [from, to] = useWindow(body, feed, rowPx);
  useLayoutEffect(() => {
    if (feed.scrollY > 0) window.scrollTo(0, feed.scrollY);
    feed.scrollY = 0;
  }, [feed]);
  if (feed.rows.length === 0) return null;
  const reading = (reason, isOn) => () => feed.hold(reason, isOn);
  return html`<table class="runs" aria-rowcount=${feed.hasMore ? -1 : feed.rows.length + 1}>
    <caption class="visually-hidden">${t("ui.runs.title")}</caption>
    <thead><tr>${COLUMNS.map((each) => html`<th key=${each} class=${`c-${each}`} scope="col">${
      each === "action" ? html`<span class="visually-hidden">${t("ui.runs.col.action")}</span>` : t(`ui.runs.col.${each}`)}</th>`)}</tr></thead>
    <tbody ref=${body} onPointerEnter=${reading("pointer", true)} onPointerLeave=${reading("pointer", false)}
      onFocusIn=${reading("focus", true)} onFocusOut=${reading("focus", false)}>
      <${Gap} px=${from * rowPx} />
      ${feed.rows.slice(from, to).map((run, n) => html`<${RunRow} key=${run.run_id} run=${run} index=${from + n} onCancel=${onCancel} />`)}
      <${Gap} px=${(feed.rows.length - to) * rowPx} />
    </tbody>
  </table>`;
}

/** The height of the rows that are not drawn. */
function Gap({ px }) {
  return px > 0 && html`<tr class="gap" aria-hidden="true"><td style=${{ height: `${px}px` }}></td></tr>`;
}

/** What follows the last row. */
function End({ feed, query }) {
  if (feed.error) return html`<${Problem} error=${feed.error} onRetry=${() => feed.show()} />`;
  if (!feed.isLoaded || (feed.loading && feed.rows.length === 0)) return html`<${Loading} />`;
  if (query.q && feed.hasMore && !feed.loading) {
    return html`<div class="end"><p>${t("ui.runs.searched", { n: count(feed.scanned) })}</p>
      <button type="button" onClick=${() => feed.searchOn()}>${t("ui.runs.search_on")}</button></div>`;
  }
  if (feed.isFull && feed.hasMore) {
    return html`<div class="end"><a class="button" href=${href("/runs", { ...query, after: feed.list.cursor })}>${t("ui.runs.older")}</a></div>`;
  }
  if (feed.hasMore) return html`<${Loading} />`;
  if (feed.rows.length > 0) return html`<p class="end faint">${t("ui.runs.end")}</p>`;
  return html`<${Nothing} query=${query} />`;
}

function Nothing({ query }) {
  if (query.status || query.flow || query.tag || query.q || query.after) {
    return html`<${Empty} title=${t("ui.runs.none_match")}><a href=${href("/runs")}>${t("ui.runs.clear")}</a><//>`;
  }
  return html`<${Empty} title=${t("ui.runs.none_yet")}><p>${t("ui.runs.submit_one")}</p>
    <pre class="example">pyoco-client --server ${location.origin} submit --flow-name hello</pre><//>`;
}

function useRowPx() {
  const [isNarrow, setNarrow] = useState(NARROW.matches);
  useEffect(() => {
    const changed = () => setNarrow(NARROW.matches);
    NARROW.addEventListener("change", changed);
    return () => NARROW.removeEventListener("change", changed);
  }, []);
  return isNarrow ? ROW_PX.narrow : ROW_PX.wide;
}

/** Which rows are drawn, as the page is scrolled; asks for more near the end, and holds new rows while scrolled. */
function useWindow(body, feed, rowPx) {
  const [range, setRange] = useState([0, 40]);
  const total = feed.rows.length;
  const look = () => {
    if (!body.current) return;
    feed.seenY = window.scrollY;
    const box = body.current.getBoundingClientRect();
    const next = windowOf(total, rowPx, -box.top, window.innerHeight);
    setRange((old) => (old[0] === next[0] && old[1] === next[1] ? old : next));
    feed.hold("scroll", box.top < 0);
    if (box.bottom - window.innerHeight < NEAR_PX) feed.more();
  };
  const latest = useRef(look);
  latest.current = look;
  useLayoutEffect(look, [total, rowPx, feed]);
  useEffect(() => {
    let asked = false;
    const scrolled = () => {
      if (asked) return;
      asked = true;
      requestAnimationFrame(() => {
        asked = false;
        latest.current();
      });
    };
    window.addEventListener("scroll", scrolled, { passive: true });
    window.addEventListener("resize", scrolled, { passive: true });
    return () => {
      window.removeEventListener("scroll", scrolled);
      window.removeEventListener("resize", scrolled);
    };
  }, []);
  return [Math.min(range[0], total), Math.min(range[1], total)];
}
