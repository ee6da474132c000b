// Light or dark: as the system has it, until the viewer chooses.
import { signal } from "./signal.js";
import { local } from "./store.js";

export const THEMES = ["auto", "light", "dark"];
const chosen = signal(local.get("theme") ?? "auto");

export function useTheme() {
  return chosen.use();
}

export function setTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  local.set("theme", theme === "auto" ? null : theme);
  chosen.write(theme);
}
