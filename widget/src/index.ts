// The chat as an ES module: importing it does nothing, `define()` lets `<motamot-chat>` be one.

import { MotamotChat, setHome } from "./element.ts";

export { MotamotChat };

/** Define `<motamot-chat>`. Done again, or beside the script of another page's part, it stays the first. */
export function define(): void {
  if (customElements.get("motamot-chat") === undefined) customElements.define("motamot-chat", MotamotChat);
}

setHome(new URL(".", import.meta.url).href);
