// What the gateway tells the page about itself: GET /static/config.json.

const config = { lang: "auto", auth: "none", api_key_header: "X-API-Key", version: "", stale_after_sec: 30 };

export async function loadConfig() {
  const answer = await fetch("/static/config.json");
  if (answer.ok) Object.assign(config, await answer.json());
}

export default config;
