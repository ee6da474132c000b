// Language and theme, chosen by the viewer.
import { LANGUAGES, setLanguage, t, useLanguage } from "../lib/i18n.js";
import { toast } from "../lib/parts.js";
import { THEMES, setTheme, useTheme } from "../lib/theme.js";
import { html } from "../lib/ui.js";

const NAMES = { en: "English", ja: "日本語" }; // each in itself, for who cannot read the other

export function Language() {
  const lang = useLanguage();
  const choose = (event) => setLanguage(event.target.value).catch(() => {
    event.target.value = lang;
    toast(t("ui.shell.gateway_unreachable"));
  });
  return html`<select aria-label=${t("ui.shell.language")} value=${lang} onChange=${choose}>
    ${LANGUAGES.map((each) => html`<option key=${each} value=${each} lang=${each}>${NAMES[each]}</option>`)}
  </select>`;
}

export function Theme() {
  const theme = useTheme();
  return html`<select aria-label=${t("ui.shell.theme")} value=${theme} onChange=${(event) => setTheme(event.target.value)}>
    ${THEMES.map((each) => html`<option key=${each} value=${each}>${t(`ui.shell.themes.${each}`)}</option>`)}
  </select>`;
}
