// What a chart shows, as a table: for those who do not see the drawing, and for copying.

import { t } from "../lib/i18n.js";
import { html, useState } from "../lib/ui.js";
import { clock, valueText } from "./words.js";

/** The newest first. The rows are made when somebody asks for them. */
export function ChartTable({ title, times, series, unit }) {
  const [isOpen, setIsOpen] = useState(false);
  return html`
    <details class="chart-table" onToggle=${(event) => setIsOpen(event.currentTarget.open)}>
      <summary>${t("ui.charts.table")}<span class="visually-hidden"> ${title}</span></summary>
      ${isOpen &&
      html`
        <div class="chart-table-box" tabindex="0" role="group" aria-label=${title}>
          <table>
            <thead>
              <tr>
                <th scope="col">${t("ui.charts.time")}</th>
                ${series.map((one) => html`<th key=${one.key} scope="col">${one.name}</th>`)}
              </tr>
            </thead>
            <tbody>
              ${times
                .map((time, i) => [time, i])
                .reverse()
                .map(
                  ([time, i]) => html`
                    <tr key=${time}>
                      <th scope="row">${clock(time)}</th>
                      ${series.map((one) => html`<td key=${one.key}>${valueText(one.values[i], unit)}</td>`)}
                    </tr>
                  `,
                )}
            </tbody>
          </table>
        </div>
      `}
    </details>
  `;
}
