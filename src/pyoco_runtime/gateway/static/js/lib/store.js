// What this browser remembers. A browser that forbids storage forgets, and nothing else changes.

export const session = remembering(() => window.sessionStorage); // until the tab is closed
export const local = remembering(() => window.localStorage); // for good

function remembering(place) {
  return {
    get(name) {
      try {
        return place().getItem(`pyoco.${name}`);
      } catch {
        return null;
      }
    },
    set(name, value) {
      try {
        if (value === null) place().removeItem(`pyoco.${name}`);
        else place().setItem(`pyoco.${name}`, value);
      } catch {
        // forbidden or full: it holds until the page is left
      }
    },
  };
}
