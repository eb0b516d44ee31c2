// Plain and quiet: the text is what it is for. System fonts, both colour schemes, no request anywhere.

import { exchange } from "./exchange.ts";
import { frame } from "./frame.ts";
import { ground } from "./ground.ts";
import { markdown } from "./markdown.ts";
import { reading } from "./reading.ts";

export const styles = ground + frame + exchange + markdown + reading;
