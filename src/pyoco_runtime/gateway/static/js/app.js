// The page: the table of views, and the shell around them.
import config, { loadConfig } from "./lib/config.js";
import { loadLanguage, t, useLanguage } from "./lib/i18n.js";
import { Panel, Toasts } from "./lib/parts.js";
import { pause } from "./lib/pause.js";
import { go, href, useRoute } from "./lib/router.js";
import { html, render, useEffect, useRef } from "./lib/ui.js";
import { KeyDialog, KeyWanted } from "./shell/key_dialog.js";
import { Language, Theme } from "./shell/switches.js";
import { Trouble } from "./shell/trouble.js";
import Charts from "./views/charts.js";
import House from "./views/house.js";
import Letters from "./views/letters.js";
import Run from "./views/run.js";
import Runs from "./views/runs.js";
import Wheels from "./views/wheels.js";
import Workers from "./views/workers.js";

const VIEWS = { runs: Runs, workers: Workers, wheels: Wheels, house: House, charts: Charts, letters: Letters };

function Shell() {
  const lang = useLanguage();
  const route = useRoute();
  const main = useRef(null);
  const name = route.parts[0] in VIEWS ? route.parts[0] : "runs";
  const place = `${name}/${route.parts[1] ?? ""}`;
  useArrival(main, place);
  useEffect(() => {
    if (route.parts.length === 0) go("/runs", {}, { replace: true });
  }, [route]);
  useEffect(() => {
    document.title = `${t(`ui.shell.nav.${name}`)} · pyoco-runtime`;
    showCurrent();
  }, [name, lang]);
  const skip = (event) => {
    event.preventDefault(); // the hash is the route
    main.current.focus();
  };
  return html`
    <a class="skip" href="#main" onClick=${skip}>${t("ui.shell.skip")}</a>
    <header class="bar">
      <a class="brand" href=${href("/runs")}><img src="/static/icon.svg" alt="" />pyoco</a>
      <nav class="nav" aria-label=${t("ui.shell.nav_label")}>
        ${Object.keys(VIEWS).map((each) => html`<a key=${each} href=${href(`/${each}`)}
          aria-current=${each === name ? "page" : null}>${t(`ui.shell.nav.${each}`)}</a>`)}
      </nav>
      <div class="switches"><${Language} /><${Theme} /></div>
    </header>
    <div class="banners"><${Trouble} /><${KeyWanted} /></div>
    <main class="main" id="main" tabindex="-1" ref=${main} key=${`${lang} ${place}`}>
      <${View} name=${name} route=${route} />
    </main>
    <${Toasts} />
    <${KeyDialog} />`;
}

/** Who goes to another view stands at its beginning, also by keyboard; who comes to the page is left alone. */
function useArrival(main, place) {
  const first = useRef(place);
  useEffect(() => {
    if (first.current !== place) main.current.focus({ preventScroll: true });
    first.current = null;
  }, [place]);
}

/** On a phone the navigation is wider than the screen. Not scrollIntoView: the first Tab would begin from there. */
function showCurrent() {
  const nav = document.querySelector(".nav");
  const link = nav.querySelector("[aria-current]");
  const past = link.offsetLeft + link.offsetWidth - nav.offsetLeft - nav.clientWidth;
  nav.scrollLeft = Math.max(0, past);
}

/** The view of a route; what escapes its own panels is caught here, so that the navigation stays. */
function View({ name, route }) {
  const Shown = name === "runs" && route.parts.length > 1 ? Run : VIEWS[name];
  return html`<${Panel} class="bare"><${Shown} route=${route} /><//>`;
}

/** The page's settings and texts; a gateway that goes away in between is waited for. */
async function begin() {
  for (let attempt = 0; ; attempt += 1) {
    try {
      await loadConfig();
      await loadLanguage();
      return;
    } catch (error) {
      console.warn(error);
      await pause(attempt);
    }
  }
}

await begin();
document.documentElement.dataset.version = config.version;
render(html`<${Shell} />`, document.getElementById("app"));
