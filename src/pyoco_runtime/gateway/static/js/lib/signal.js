// A value that many look at: `read()`, `write(value)`, and `use()` inside a component.
import { useEffect, useState } from "./ui.js";

export function signal(first) {
  let value = first;
  const readers = new Set();
  const follow = (reader) => {
    readers.add(reader);
    return () => readers.delete(reader);
  };
  return {
    read: () => value,
    write(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const reader of [...readers]) reader(value);
    },
    follow,
    use() {
      const [, redraw] = useState(0);
      useEffect(() => {
        const seen = value;
        const stop = follow(() => redraw((n) => n + 1));
        if (!Object.is(seen, value)) redraw((n) => n + 1);
        return stop;
      }, []);
      return value;
    },
  };
}
