// How far the parser looks ahead and back, in UTF-16 units unless told otherwise. What goes beyond is text.

/** Held back where a few more characters decide what is meant: no reader waits for more than some words. */
export const HELD = 48;

/** The longest run of one mark (`*`, a backtick) that can mean anything. */
export const RUN = 16;

/** Of the address and title of a link, from its `(` to its `)`: browsers and proxies carry no much longer ones. */
export const ADDRESS = 2048;

/** Of the text of a link, and of code within a line: bounds what is read again when its end does not come. */
export const SPAN = 1000;

/** Of an emphasis: bounds what has to be moved in the page when its end does not come. */
export const EMPHASIS = 4000;

/** Square brackets within each other at the beginning of a link. */
export const BRACKETS = 4;

/** Emphases and brackets open at once: browsers lay out deep trees slowly. */
export const INLINES = 16;

/** Quotes and list items within each other. */
export const CONTAINERS = 32;

/** Of a line that may be a rule, and of the first line of fenced code: both are shown when the line is whole. */
export const LINE = 128;

/** Of the rows that begin a table: they are shown when both are whole. */
export const ROW = 1000;

/** Columns of a table. */
export const COLUMNS = 64;
