// How much text fits: SVG cuts nothing by itself. Pure; a Chinese or Japanese character is about two Latin ones wide.

const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;

/** The text, or its beginning and "…", within `units` Latin characters. */
export function fitted(text, units) {
  const characters = [...text];
  const widths = characters.map((each) => (WIDE.test(each) ? 1.75 : 1));
  if (widths.reduce((sum, n) => sum + n, 0) <= units) return text;
  let used = 1;
  const kept = characters.filter((_, n) => (used += widths[n]) <= units);
  return `${kept.join("")}…`;
}
