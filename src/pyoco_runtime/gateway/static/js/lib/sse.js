// Server-sent events as text comes in: pure, so that it can be tested with text alone.

/** `feed(text)` returns the events that are whole: [{id, event, data}], data parsed from JSON. */
export function eventReader() {
  let rest = "";
  return function feed(text) {
    const blocks = (rest + text).split("\n\n");
    rest = blocks.pop();
    return blocks.map(eventOf).filter((each) => each !== null);
  };
}

function eventOf(block) {
  const found = { id: null, event: "message", data: null };
  const data = [];
  for (const line of block.split("\n")) {
    const at = line.indexOf(":");
    if (at === 0) continue; // a comment
    const name = at < 0 ? line : line.slice(0, at);
    const value = at < 0 ? "" : line.slice(at + 1).replace(/^ /, "");
    if (name === "id") found.id = value;
    else if (name === "event") found.event = value;
    else if (name === "data") data.push(value);
  }
  if (data.length === 0) return null;
  found.data = JSON.parse(data.join("\n"));
  return found;
}
