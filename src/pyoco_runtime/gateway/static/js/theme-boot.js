// Before anything is drawn: the theme that the viewer has chosen, so that a dark page never flashes white.
try {
  const chosen = window.localStorage.getItem("pyoco.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // storage is forbidden: the system's theme it is
}
