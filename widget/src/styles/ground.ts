// The element's box, its colours and its letters. The page around it reaches in by custom properties alone: `all:
// initial` keeps out what would be inherited, and a rule for `*` does not match in a shadow root. Lengths are in `em`
// of what the visitor has chosen for text: `rem` is the page's, and many make it ten pixels.

export const ground = `
:host {
  all: initial;
  display: block;
  position: relative;
  block-size: 100%;
  min-block-size: 22em;
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
  --ground: var(--motamot-ground, #fbfaf8);
  --raised: var(--motamot-raised, #ffffff);
  --ink: var(--motamot-ink, #1d211f);
  --soft: var(--motamot-soft, #5a625e);
  --line: var(--motamot-line, #dedcd6);
  --accent: var(--motamot-accent, #1f6f5c);
  --on-accent: var(--motamot-on-accent, #ffffff);
  --asked: var(--motamot-asked, #e6efeb);
  --bad: #a3271d;
  --bad-ground: #fbeae8;
  --note-ground: #f4eeda;
  --note: #6b5310;
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
  font-size: var(--motamot-size, medium);
  line-height: 1.6;
  -webkit-text-size-adjust: 100%;
  text-size-adjust: 100%;
}

@media (prefers-color-scheme: dark) {
  #chat {
    --ground: var(--motamot-ground, #151816);
    --raised: var(--motamot-raised, #1e2220);
    --ink: var(--motamot-ink, #e8ebe9);
    --soft: var(--motamot-soft, #a2aba6);
    --line: var(--motamot-line, #343a37);
    --accent: var(--motamot-accent, #6cc3aa);
    --on-accent: var(--motamot-on-accent, #0d1512);
    --asked: var(--motamot-asked, #23332d);
    --bad: #ff9d92;
    --bad-ground: #3a2220;
    --note-ground: #332d1a;
    --note: #e5cf8d;
  }
}

* {
  box-sizing: border-box;
}

[hidden] {
  display: none !important;
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
