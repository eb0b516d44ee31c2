// The chat as one line of a page: `<script src="https://chat.example/widget.js" async></script>`.

import { own } from "./dom.ts";
import { define, setHome } from "./element.ts";
import { launch } from "./launcher.ts";

function begin(script: HTMLScriptElement): void {
  const server = new URL(".", script.src).href;
  const { launcher, assistant, lang, images, theme, position, open } = script.dataset;
  setHome(server);
  define();
  if (launcher === "none") return;
  const wanted = { server, assistant, lang, images, theme, position, open: open !== undefined && open !== "false" };
  // An `async` script may be here before the page's body is.
  if (own("body") !== null) launch(wanted);
  else document.addEventListener("DOMContentLoaded", () => launch(wanted), { once: true });
}

const script = own("currentScript");
if (script instanceof HTMLScriptElement) begin(script);
