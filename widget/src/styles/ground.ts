// The element's box, its colours and its letters. The page around it reaches in by custom properties alone: `all:
// initial` keeps out what would be inherited, and a rule for `*` does not match in a shadow root. Lengths are in `em`
// of what the visitor has chosen for text: `rem` is the page's, and many make it ten pixels.

export const ground = `
:host {
  all: initial;
  display: block;
  position: relative;
  box-sizing: border-box;
  block-size: 100%;
  min-block-size: 22em;
  color-scheme: light dark;
  font-size: var(--motamot-size, medium) !important; /* a rule of the page for all elements is not meant for us */
}

:host([closable]) {
  min-block-size: 0;
}

/* In a box of a page. */
:host(:not([page], [closable])) {
  overflow: hidden;
  border: 1px solid var(--motamot-line, light-dark(#dedcd6, #343a37));
  border-radius: 0.75em;
}

:host([hidden]) {
  display: none;
}

:host([page]) {
  position: fixed;
  inset: 0 0 auto;
  block-size: 100dvh;
  min-block-size: 0;
}

#chat {
  all: initial;
  --ground: var(--motamot-ground, light-dark(#fbfaf8, #151816));
  --raised: var(--motamot-raised, light-dark(#ffffff, #1e2220));
  --ink: var(--motamot-ink, light-dark(#1d211f, #e8ebe9));
  --soft: var(--motamot-soft, light-dark(#5a625e, #a2aba6));
  --line: var(--motamot-line, light-dark(#dedcd6, #343a37));
  --accent: var(--motamot-accent, light-dark(#1f6f5c, #6cc3aa));
  --on-accent: var(--motamot-on-accent, light-dark(#ffffff, #0d1512));
  --asked: var(--motamot-asked, light-dark(#e6efeb, #23332d));
  --code: var(--motamot-code, light-dark(#f2f0eb, #1f2422));
  --bad: light-dark(#a3271d, #ff9d92);
  --bad-ground: light-dark(#fbeae8, #3a2220);
  --note-ground: light-dark(#f4eeda, #332d1a);
  --note: light-dark(#6b5310, #e5cf8d);
  display: flex;
  flex-direction: column;
  position: absolute;
  inset: 0;
  overflow: hidden;
  container-type: size;
  background: var(--ground);
  color: var(--ink);
  color-scheme: light dark;
  font-family: var(--motamot-font, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", sans-serif);
  font-size: 1em;
  line-height: 1.6;
  -webkit-text-size-adjust: 100%;
  text-size-adjust: 100%;
}

:host([theme="light"]),
:host([theme="light"]) #chat {
  color-scheme: light;
}

:host([theme="dark"]),
:host([theme="dark"]) #chat {
  color-scheme: dark;
}

* {
  box-sizing: border-box;
}

[hidden] {
  display: none !important;
}

/* Words of ours in another direction than the page's stand where the page's would. */
[data-words] {
  text-align: -webkit-match-parent; /* Chromium's name for it */
  text-align: match-parent;
}

.unseen {
  position: absolute;
  width: 1px;
  height: 1px;
  margin: -1px;
  overflow: hidden;
  clip-path: inset(50%);
  white-space: nowrap;
}

:focus-visible {
  outline: 2px solid var(--accent);
  outline-offset: 2px;
}

button,
select,
textarea {
  font: inherit;
  color: inherit;
}

button {
  cursor: pointer;
}

svg {
  width: 1.25em;
  height: 1.25em;
  flex: none;
  fill: none;
  stroke: currentColor;
  stroke-width: 1.7;
  stroke-linecap: round;
  stroke-linejoin: round;
}
`;
