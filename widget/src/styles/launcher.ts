// The button and its panel. What is said with `!important` in a shadow root is stronger than anything the page says of
// the element: no rule of its own can hide the button or move the page's content by it.

export const launcher = `
:host {
  all: initial !important;
  position: fixed !important;
  z-index: 2147483000 !important;
  inset: auto 1em 1em auto !important;
  font-size: medium !important;
  color-scheme: light dark !important;
  --accent: var(--motamot-accent, light-dark(#1f6f5c, #6cc3aa));
  --on-accent: var(--motamot-on-accent, light-dark(#ffffff, #0d1512));
  --line: var(--motamot-line, light-dark(#dedcd6, #343a37));
}

:host(.left),
:host(:dir(rtl):not(.right)) {
  inset: auto auto 1em 1em !important;
}

:host([theme="light"]) {
  color-scheme: light !important;
}

:host([theme="dark"]) {
  color-scheme: dark !important;
}

* {
  box-sizing: border-box;
}

#button {
  display: grid;
  width: 3.5em;
  height: 3.5em;
  margin-left: auto;
  padding: 0;
  border: 0;
  border-radius: 50%;
  background: var(--accent);
  box-shadow: 0 3px 14px rgb(0 0 0 / 25%);
  color: var(--on-accent);
  font: inherit;
  cursor: pointer;
  place-items: center;
}

:host(.left) #button,
:host(:dir(rtl):not(.right)) #button {
  margin: 0 auto 0 0;
}

#button:focus-visible {
  outline: 3px solid var(--accent);
  outline-offset: 3px;
}

svg {
  width: 1.7em;
  height: 1.7em;
  fill: none;
  stroke: currentColor;
  stroke-width: 1.6;
  stroke-linecap: round;
  stroke-linejoin: round;
}

#button[aria-expanded="true"] .shut,
#button[aria-expanded="false"] .open {
  display: none;
}

#panel {
  position: static;
  width: min(26em, 100vw - 2em);
  max-width: none;
  height: min(40em, 100dvh - 6.5em);
  max-height: none;
  margin: 0 0 0.75em;
  padding: 0;
  overflow: hidden;
  border: 1px solid var(--line);
  border-radius: 1em;
  box-shadow: 0 8px 40px rgb(0 0 0 / 25%);
}

@media (max-width: 30em), (max-height: 30em) {
  #panel {
    position: fixed;
    inset: 0;
    width: 100%;
    height: 100dvh;
    margin: 0;
    border: 0;
    border-radius: 0;
  }

  #panel[open] + #button {
    display: none; /* the chat has a button of its own that closes it */
  }
}

@media print {
  #button {
    display: none; /* it would stand on each sheet of paper */
  }
}

@media (forced-colors: active) {
  #button,
  #panel {
    border: 1px solid;
  }
}
`;
