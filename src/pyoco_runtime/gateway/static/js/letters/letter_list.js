// The dead letters that are shown: the newest page is read again whenever the stream says that there is something new.

import { get } from "../lib/api.js";
import { useStream } from "../lib/parts.js";
import { useEffect, useRef, useState } from "../lib/ui.js";

const PAGE = 50;
const NOTHING = { letters: null, nextBefore: null, error: null };

/**
 * {letters: null before the first answer, counts: {reason: n}, total, hasOlder, error, older(), forget(seq)}
 */
export function useLetters(reason) {
  const [list, setList] = useState(NOTHING);
  const [standing, setStanding] = useState(null);
  const [refused, setRefused] = useState(null);
  const reader = useReader(reason, setList);
  useStream("/dlq/watch", {
    onEvent({ event, data }) {
      if (event !== "change") return;
      setStanding(data);
      reader.newest();
    },
    onState: (_, error) => setRefused(error ?? null),
  });
  return {
    ...list,
    counts: standing?.reasons ?? {},
    total: standing?.count ?? 0,
    hasOlder: list.nextBefore !== null,
    error: refused ?? list.error,
    older: () => reader.older(list.nextBefore),
    forget: (seq) => setList((old) => without(old, seq)),
  };
}

/** Reads pages for one reason; another reason begins anew. */
function useReader(reason, setList) {
  const current = useRef(null);
  useEffect(() => {
    const stopping = new AbortController();
    setList(NOTHING);
    current.current = readerOf(reason, stopping.signal, setList);
    current.current.newest();
    return () => stopping.abort();
  }, [reason]);
  return { newest: () => current.current?.newest(), older: (before) => current.current?.older(before) };
}

function readerOf(reason, signal, setList) {
  let isReading = false;
  let isStale = false;
  return {
    /** One after the other: an answer that is late must not undo a newer one. */
    async newest() {
      isStale = true;
      if (isReading) return;
      isReading = true;
      while (isStale) {
        isStale = false;
        await read(reason, null, signal, setList);
      }
      isReading = false;
    },
    older: (before) => read(reason, before, signal, setList),
  };
}

async function read(reason, before, signal, setList) {
  const query = new URLSearchParams({ limit: PAGE });
  if (reason) query.set("reason", reason);
  if (before !== null) query.set("before", before);
  try {
    const page = await get(`/dlq?${query}`, { signal });
    if (!signal.aborted) setList((old) => (before === null ? withNewest(old, page) : withOlder(old, page)));
  } catch (error) {
    if (error.name !== "AbortError") setList((old) => ({ ...old, error }));
  }
}

function without(old, seq) {
  return { ...old, letters: old.letters?.filter((letter) => letter.seq !== seq) ?? null };
}

/** The newest page is the truth as far as it reaches; what was read below it stays. */
function withNewest(old, page) {
  const oldest = page.items[page.items.length - 1]?.seq ?? Infinity;
  const below = page.next_before === null ? [] : (old.letters ?? []).filter((letter) => letter.seq < oldest);
  return {
    letters: [...page.items, ...below],
    nextBefore: below.length ? old.nextBefore : page.next_before,
    error: null,
  };
}

function withOlder(old, page) {
  const known = new Set(old.letters.map((letter) => letter.seq));
  const more = page.items.filter((letter) => !known.has(letter.seq));
  return { letters: [...old.letters, ...more], nextBefore: page.next_before, error: null };
}
