// Hash routes: `#/runs?status=RUNNING` is {path: "/runs", parts: ["runs"], query: {status: "RUNNING"}}.
import { signal } from "./signal.js";

const current = signal(routeOf(location.hash));
history.scrollRestoration = "manual"; // a view that can go back to its place does so itself
window.addEventListener("hashchange", () => {
  const next = routeOf(location.hash);
  if (next.path !== current.read().path) window.scrollTo(0, 0);
  current.write(next);
});

export function useRoute() {
  return current.use();
}

/** The address of a place, for `href`. Empty values of the query are left out. */
export function href(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const text = new URLSearchParams(given).toString();
  return `#${path}${text ? `?${text}` : ""}`;
}

/** Go there; `replace` leaves no step in the browser's history. */
export function go(path, query = {}, { replace = false } = {}) {
  const next = href(path, query);
  if (next === location.hash) return;
  if (!replace) {
    location.hash = next;
    return;
  }
  history.replaceState(null, "", next);
  current.write(routeOf(next));
}

/** Pure: what a hash means. */
export function routeOf(hash) {
  const [path, text = ""] = hash.replace(/^#/, "").split(/\?(.*)/s);
  const parts = path.split("/").filter(Boolean).map(decoded);
  return { path: `/${path.replace(/^\/+/, "")}`, parts, query: Object.fromEntries(new URLSearchParams(text)) };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
