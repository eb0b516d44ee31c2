// Head, conversation and foot.

export const frame = `
#head {
  display: flex;
  flex: none;
  flex-wrap: wrap;
  align-items: center;
  gap: 0.25em 1em;
  padding: 0.6em 1em;
  border-bottom: 1px solid var(--line);
}

#title {
  flex: 1 1 8em;
  min-width: 0;
  margin: 0;
  overflow: hidden;
  font-size: 1.05em;
  font-weight: 650;
  text-overflow: ellipsis;
  white-space: nowrap;
}

#choice {
  flex: 1 1 8em;
  min-width: 0;
}

select {
  max-width: 100%;
  padding: 0.3em 0.5em;
  border: 1px solid var(--line);
  border-radius: 0.5em;
  background: var(--raised);
  font-weight: 650;
}

#acts {
  display: flex;
  margin-inline-end: -0.5em; /* the last picture stands above the edge of what is below */
  gap: 0.25em;
}

#acts button {
  display: inline-flex;
  align-items: center;
  justify-content: center;
  gap: 0.4em;
  padding: 0.4em 0.65em;
  border: 0;
  border-radius: 0.55em;
  background: none;
  color: var(--soft);
  font-size: 0.9em;
}

#language .tag {
  display: none;
  text-transform: uppercase;
}

#acts button:hover,
.actions button:hover {
  background: var(--asked);
  color: var(--ink);
}

#stage {
  position: relative;
  flex: 1;
  min-height: 6em; /* at 400 % zoom there is still something to read */
}

#log {
  height: 100%;
  overflow-x: hidden;
  overflow-y: auto;
  overflow-anchor: none; /* the chat alone moves the view, and only while its end is read */
  overscroll-behavior: contain;
}

#log:focus-visible {
  outline-offset: -3px;
}

#content,
#foot > * {
  width: 100%;
  max-width: 46em;
  margin-inline: auto;
}

#content {
  display: flex;
  flex-direction: column;
  min-height: 100%;
  padding: 1.25em 1em 2em;
}

#model {
  align-self: center;
  margin: 0 0 1.1em;
  padding: 0.3em 0.9em;
  border-radius: 1.1em;
  background: var(--note-ground);
  color: var(--note);
  font-size: 0.875em;
}

#welcome {
  margin: auto;
  font-size: 1.5em;
  font-weight: 600;
  text-align: center;
  text-wrap: balance;
}

#exchanges {
  margin: 0;
  padding: 0;
  list-style: none;
}

#latest {
  position: absolute;
  bottom: 0.75em;
  left: 50%;
  display: inline-flex;
  align-items: center;
  gap: 0.35em;
  padding-block: 0.35em;
  padding-inline: 0.7em 0.9em;
  border: 1px solid var(--line);
  border-radius: 2em;
  background: var(--raised);
  box-shadow: 0 2px 10px rgb(0 0 0 / 15%);
  font-size: 0.9em;
  white-space: nowrap;
  transform: translateX(-50%);
}

#foot {
  flex: none;
  padding: 0.25em 1em max(0.5em, env(safe-area-inset-bottom));
}

#trouble {
  margin-block: 0;
  color: var(--bad);
  font-size: 0.9em;
}

#trouble :not(:empty) {
  display: inline-block;
  margin-bottom: 0.4em;
}

#composer {
  display: flex;
  align-items: flex-end;
  gap: 0.5em;
  padding-block: 0.35em;
  padding-inline: 0.9em 0.35em;
  border: 1px solid var(--line);
  border-radius: 1.5em;
  background: var(--raised);
}

#composer:focus-within {
  border-color: var(--accent);
  box-shadow: 0 0 0 1px var(--accent);
}

#question {
  flex: 1;
  min-width: 0;
  max-height: 30cqh;
  margin: 0;
  padding: 0.35em 0;
  border: 0;
  outline: 0; /* the frame around it shows the focus */
  background: none;
  line-height: 1.5;
  resize: none;
}

#question::placeholder {
  color: var(--soft);
  opacity: 1;
}

#send {
  display: grid;
  flex: none;
  width: 2.25em;
  height: 2.25em;
  padding: 0;
  border: 0;
  border-radius: 50%;
  background: var(--accent);
  color: var(--on-accent);
  place-items: center;
}

#send svg {
  stroke-width: 2.2;
}

#send .halt {
  display: none;
  fill: currentColor;
}

#send.busy .halt {
  display: block;
}

#send.busy .go {
  display: none;
}

#machine {
  margin-block: 0.5em 0;
  color: var(--soft);
  font-size: 0.8em;
  text-align: center;
  text-wrap: balance;
}

dialog {
  max-width: min(26em, calc(100vw - 2em));
  padding: 1.25em;
  border: 1px solid var(--line);
  border-radius: 1em;
  background: var(--raised);
  color: var(--ink);
}

dialog::backdrop {
  background: rgb(0 0 0 / 45%);
}

dialog h2 {
  margin: 0;
  font-size: 1.1em;
}

dialog p {
  margin: 0.5em 0 1em;
  color: var(--soft);
}

dialog div {
  display: flex;
  flex-wrap: wrap;
  justify-content: flex-end;
  gap: 0.5em;
}

dialog button {
  padding: 0.4em 1em;
  border: 1px solid var(--line);
  border-radius: 0.6em;
  background: none;
}

dialog .danger {
  border-color: var(--bad);
  background: var(--bad);
  color: var(--raised);
}

@container (max-width: 46em) {
  #language .tag {
    display: inline;
  }

  #head {
    column-gap: 0.4em;
  }

  #title,
  #choice {
    flex-basis: 5em;
  }

  #acts {
    flex-wrap: wrap;
    gap: 0;
  }

  #acts button {
    padding-inline: 0.5em;
  }

  #language .name,
  #acts button:has(svg) span {
    position: absolute;
    width: 1px;
    height: 1px;
    overflow: hidden;
    clip-path: inset(50%);
    white-space: nowrap;
  }
}

/* Little room, as at 200 % zoom of a small window: the text comes first. */
@container (max-height: 26em) {
  #head {
    padding-block: 0.1em;
  }

  #foot {
    padding-block: 0 0.2em;
  }

  #machine {
    margin-block-start: 0.1em;
    line-height: 1.3;
  }
}

@media (pointer: coarse) {
  button,
  select,
  summary {
    min-width: 44px;
    min-height: 44px;
  }

  summary {
    align-content: center;
  }

  #question {
    padding-block: max(0.35em, 22px - 0.75em);
    font-size: max(1em, 16px); /* a phone enlarges the page around what is smaller and gets the focus */
  }
}

@media (forced-colors: active) {
  #send,
  #composer {
    border: 1px solid;
  }
}
`;
