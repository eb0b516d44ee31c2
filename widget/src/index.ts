// The chat as an ES module: importing it does nothing, `define()` lets `<motamot-chat>` be one.

import { setHome } from "./element.ts";

export { define, MotamotChat } from "./element.ts";

setHome(new URL(".", import.meta.url).href);
