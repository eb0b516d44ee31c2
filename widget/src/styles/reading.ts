// The reading panel, and what is chosen in it. A reader's choice is stronger than the site's own colours.

export const reading = `
#reading-panel {
  position: absolute;
  inset: 3.4em 0.75em auto auto;
  z-index: 1;
  width: min(25em, 100% - 1.5em);
  max-width: none;
  max-height: calc(100% - 4em);
  margin: 0;
  padding: 1em 1.1em;
  overflow: auto;
  box-shadow: 0 6px 30px rgb(0 0 0 / 22%);
}

#reading-panel:dir(rtl) {
  inset: 3.4em auto auto 0.75em;
}

#reading-panel h2 {
  margin-block: 0.1em 0.7em;
}

#reading-panel .shut {
  float: inline-end;
  display: inline-grid;
  margin-block-start: -0.25em;
  margin-inline-end: -0.35em;
  padding: 0.4em;
  border: 0;
  place-items: center;
}

fieldset {
  min-width: 0;
  margin: 0 0 0.8em;
  padding: 0;
  border: 0;
}

legend {
  padding: 0;
  color: var(--soft);
  font-size: 0.9em;
}

#reading-panel .choices {
  justify-content: flex-start;
  gap: 0.35em;
  margin-top: 0.25em;
}

#reading-panel label {
  display: inline-flex;
  align-items: center;
  gap: 0.4em;
  padding-block: 0.3em;
  padding-inline: 0.5em 0.7em;
  border: 1px solid var(--line);
  border-radius: 0.6em;
  cursor: pointer;
}

#reading-panel label:has(:checked) {
  border-color: var(--accent);
  box-shadow: 0 0 0 1px var(--accent);
}

#reading-panel label:has(:focus-visible) {
  outline: 2px solid var(--accent);
  outline-offset: 2px;
}

#reading-panel input {
  width: 1em;
  height: 1em;
  margin: 0;
  outline: 0; /* its label has it */
  accent-color: var(--accent);
}

label[data-choice="cream"] {
  background: #fbf1da;
  color: #2a2419;
}

label[data-choice="tinted"] {
  background: light-dark(#e4eef6, #17242f);
}

@container (max-height: 30em) {
  #reading-panel,
  #reading-panel:dir(rtl) {
    inset-block-start: 0.5em;
    max-height: calc(100% - 1em);
  }
}

#chat[data-ground="cream"] {
  --ground: #fbf1da;
  --raised: #fffaee;
  --ink: #2a2419;
  --soft: #5f5541;
  --line: #dccdab;
  --accent: #1f6155;
  --on-accent: #ffffff;
  --asked: #f0e2c0;
  --code: #f5e9cd;
  color-scheme: light !important; /* whatever the site's theme is */
}

#chat[data-ground="tinted"] {
  --ground: light-dark(#e4eef6, #17242f);
  --raised: light-dark(#f3f8fc, #1f2e3a);
  --ink: light-dark(#16232e, #e3ecf3);
  --soft: light-dark(#455867, #a9bccb);
  --line: light-dark(#bfd1df, #3a4d5c);
  --accent: light-dark(#17597d, #86c5ea);
  --on-accent: light-dark(#ffffff, #0c1720);
  --asked: light-dark(#cfe1ee, #263c4d);
  --code: light-dark(#d8e6f0, #1e2f3c);
}

#chat[data-contrast="high"] {
  --ink: light-dark(#000000, #ffffff);
  --soft: light-dark(#1c1c1c, #ececec);
  --line: light-dark(#5a5a5a, #b5b5b5);
  --accent: light-dark(#003f33, #9becd6);
  --on-accent: light-dark(#ffffff, #000000);
  --bad: light-dark(#7d0a03, #ffc4bd);
  --note: light-dark(#3d2e00, #ffe9a8);
}

#chat[data-contrast="high"]:not([data-ground]) {
  --ground: light-dark(#ffffff, #000000);
  --raised: light-dark(#ffffff, #000000);
  --asked: light-dark(#ededed, #262626);
  --code: light-dark(#f2f2f2, #1c1c1c);
}

#chat[data-contrast="high"] :is(.asked, .mark, .marks li, #model) {
  border: 1px solid;
}

#chat[data-contrast="high"] :focus-visible {
  outline-width: 3px;
}

#chat[data-size="125"] {
  font-size: 1.25em;
}

#chat[data-size="150"] {
  font-size: 1.5em;
}

#chat[data-size="175"] {
  font-size: 1.75em;
}

#chat[data-size="200"] {
  font-size: 2em;
}

#chat[data-lines="wide"] :is(.asked, .text, .thoughts, #question) {
  line-height: 2.1;
  word-spacing: 0.12em;
}

@media (pointer: coarse) {
  #reading-panel label {
    min-height: 44px;
  }
}

@media (forced-colors: active) {
  #reading-panel label:has(:checked) {
    outline: 2px solid;
  }
}
`;
