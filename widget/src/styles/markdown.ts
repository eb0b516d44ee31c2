// An answer's Markdown.

export const markdown = `
.text > :first-child {
  margin-block-start: 0;
}

.text > :last-child {
  margin-block-end: 0;
}

.text :is(p, ul, ol, blockquote, .code, .table) {
  margin-block: 0 0.85em;
}

.text :is(ul, ol, blockquote) :is(p, ul, ol):last-child,
.text :is(ul, ol):not(.loose) > li > p {
  margin-block-end: 0;
}

.text :is(h3, h4, h5, h6) {
  margin-block: 1.1em 0.45em;
  font-weight: 650;
  line-height: 1.3;
}

.text h3 {
  font-size: 1.3em;
}

.text h4 {
  font-size: 1.15em;
}

.text :is(h5, h6) {
  font-size: 1em;
}

.text :is(ul, ol) {
  padding-inline-start: 1.7em;
}

.text ul {
  list-style-type: disc;
}

.text ul ul {
  list-style-type: circle;
}

.text li + li {
  margin-block-start: 0.2em;
}

.text .loose > li + li {
  margin-block-start: 0.7em;
}

.text li::marker {
  color: var(--soft);
}

.text blockquote {
  margin-inline: 0;
  padding-inline-start: 0.9em;
  border-inline-start: 3px solid var(--line);
  color: var(--soft);
}

.text hr {
  margin-block: 1.2em;
  border: 0;
  border-block-start: 1px solid var(--line);
}

.text code {
  font-family: var(--motamot-code-font, ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace);
  font-size: 0.9em;
}

.text :not(pre) > code {
  padding: 0.1em 0.35em;
  border-radius: 0.35em;
  background: var(--code);
}

.code {
  position: relative;
  border: 1px solid var(--line);
  border-radius: 0.65em;
  background: var(--code);
}

/* What it is in, and the button, stand above it: on what scrolls they would lie on the text. */
.code::before {
  content: attr(data-language) / "";
  display: block;
  min-height: 1lh;
  padding-inline: 1em 3em;
  overflow: hidden;
  border-block-end: 1px solid var(--line);
  color: var(--soft);
  font-size: 0.8em;
  line-height: 2.4;
  text-overflow: ellipsis;
  white-space: nowrap;
}

.code pre {
  margin: 0;
  padding: 0.75em 0.9em;
  overflow-x: auto;
  border-radius: inherit;
  line-height: 1.5;
  overflow-wrap: normal;
  white-space: pre;
}

.code-copy {
  position: absolute;
  inset: 0 0.1em auto auto;
  height: 1.9em;
  background: var(--code);
  font-size: 0.9em;
}

.code-copy:hover {
  color: var(--ink);
}

.table {
  overflow-x: auto;
}

.table table {
  border-collapse: collapse;
}

.table :is(th, td) {
  padding: 0.35em 0.75em;
  border: 1px solid var(--line);
  overflow-wrap: normal;
  text-align: start;
  vertical-align: top;
}

.table th {
  background: var(--code);
  font-weight: 650;
}

.text li:has(> p > label > input) {
  list-style: none;
}

.text label > input {
  margin: 0 0.5em 0 -1.4em;
}

.text label > input:dir(rtl) {
  margin: 0 -1.4em 0 0.5em;
}

@media (pointer: coarse) {
  .code::before {
    line-height: 44px;
  }

  .code-copy {
    height: 44px;
  }
}

.text img {
  max-width: 100%;
  height: auto;
}

/* The answer goes on: what is behind the last word is no text, and is neither read out nor copied. */
[aria-busy="true"] .text > p:last-child::after,
[aria-busy="true"] .text > blockquote:last-child > p:last-child::after,
[aria-busy="true"] .text > :is(ul, ol):last-child > li:last-child > p:last-child::after {
  content: "";
  display: inline-block;
  width: 0.5em;
  height: 0.5em;
  margin-inline-start: 0.35em;
  border-radius: 50%;
  background: var(--accent);
  animation: wait 1.2s infinite ease-in-out;
}

@media (prefers-reduced-motion: reduce) {
  [aria-busy="true"] .text ::after {
    animation: none !important;
    opacity: 0.7;
  }
}
`;
