// A component that is drawn again only when one of its props is another: for long lists of which little changes.

import { Component, html } from "../lib/ui.js";

export function steady(Shown) {
  return class Steady extends Component {
    shouldComponentUpdate(next) {
      const names = Object.keys(next);
      return names.length !== Object.keys(this.props).length || names.some((name) => next[name] !== this.props[name]);
    }

    render(props) {
      return html`<${Shown} ...${props} />`;
    }
  };
}
