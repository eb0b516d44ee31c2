// A question, its answer, and how it ended.

export const exchange = `
.exchange + .exchange {
  margin-top: 2em;
}

.asked,
.text,
.thoughts {
  margin: 0;
  overflow-wrap: anywhere;
  white-space: pre-wrap; /* every space and line end as it was written */
}

.asked,
.thoughts {
  unicode-bidi: plaintext;
}

.question {
  display: flex;
  justify-content: flex-end;
  padding-inline-start: 15%;
}

.asked {
  padding: 0.55em 0.95em;
  border-radius: 1.1em;
  border-end-end-radius: 0.3em;
  background: var(--asked);
}

.answer {
  margin-top: 0.9em;
}

.agent,
.tools,
.sources,
.marks,
.reasoning,
.wait,
.end,
.actions {
  margin: 0;
  padding: 0;
  color: var(--soft);
  font-size: 0.9em;
  list-style: none;
  overflow-wrap: anywhere;
}

.agent:empty,
.tools:empty,
.sources:empty,
.marks:empty,
.mark:empty {
  display: none;
}

.agent {
  font-weight: 600;
}

summary {
  padding-block: 0.15em;
  cursor: pointer;
}

.thoughts {
  margin: 0.25em 0 0.8em;
  padding-inline-start: 0.9em;
  border-inline-start: 3px solid var(--line);
}

.tools,
.sources,
.wait {
  margin-top: 0.55em;
}

.sources::before {
  content: attr(aria-label) / "";
  display: block;
  font-weight: 600;
}

.sources li + li {
  margin-top: 0.15em;
}

a {
  color: var(--accent);
  overflow-wrap: anywhere;
}

.wait {
  display: flex;
  align-items: center;
  gap: 0.65em;
}

.dots {
  display: inline-flex;
  gap: 0.28em;
}

.dots i {
  width: 0.5em;
  height: 0.5em;
  border-radius: 50%;
  background: currentColor;
  animation: wait 1.2s infinite ease-in-out;
}

.dots i:nth-child(2) {
  animation-delay: 0.15s;
}

.dots i:nth-child(3) {
  animation-delay: 0.3s;
}

@keyframes wait {
  0%,
  60%,
  100% {
    opacity: 0.3;
  }
  30% {
    opacity: 1;
  }
}

@media (prefers-reduced-motion: reduce) {
  .dots i {
    animation: none;
    opacity: 0.7;
  }
}

.end {
  display: flex;
  flex-wrap: wrap;
  align-items: center;
  gap: 0.45em 0.85em;
  margin-top: 0.65em;
}

.marks {
  display: contents;
}

.marks li,
.mark {
  padding: 0.15em 0.8em;
  border-radius: 0.65em;
  background: var(--note-ground);
  color: var(--note);
}

.answer[data-outcome="failed"] .mark,
.answer[data-outcome="interrupted"] .mark {
  background: var(--bad-ground);
  color: var(--bad);
}

.retry,
#trouble button {
  padding: 0.15em 0.9em;
  border: 1px solid currentColor;
  border-radius: 1.1em;
  background: none;
  color: var(--accent);
}

.actions {
  display: flex;
  flex-wrap: wrap;
  gap: 0.15em;
  margin-block-start: 0.4em;
  margin-inline-start: -0.45em;
}

.actions button,
.code-copy {
  display: inline-flex;
  align-items: center;
  gap: 0.35em;
  padding: 0.3em 0.45em;
  border: 0;
  border-radius: 0.5em;
  background: none;
  color: var(--soft);
}

.copied .go,
:not(.copied) > .done {
  display: none;
}

/* Only the last question can be asked again: later ones were asked knowing its answer. */
.exchange:not(:last-child) :is(.retry, .regenerate, .more) {
  display: none;
}

@container (max-width: 34em) {
  .question {
    padding-inline-start: 8%;
  }
}

@media (forced-colors: active) {
  .mark,
  .marks li,
  .asked {
    border: 1px solid;
  }
}
`;
