// What a page shows, and when: how the text of each of its elements grew. Runs before the page's own scripts, in each
// of its frames, and changes nothing of them but `attachShadow`, which goes on to work: an observer of the document
// does not see into shadow roots, where chat widgets live.
(() => {
  "use strict";
  if (globalThis.__motamotShown) return;
  const EVERY_MS = 40; // between two looks: shorter than anybody notices
  const ELEMENTS = 5000;
  const SAMPLES = 5000; // of one element
  const CHARACTERS = 2000000; // of one element's text that is told
  const wait = setTimeout.bind(globalThis);
  const now = () => performance.timeOrigin + performance.now();
  const grown = new Map(); // element: [[when, characters], …]
  const totals = []; // of all roots together
  const roots = [];
  const shut = []; // elements whose shadow root is closed: seen from here, and not reached by whoever types
  let dirty = new Set();
  let planned = false;
  let changed = 0;

  const skipped = (element) => /^(HTML|HEAD|SCRIPT|STYLE|NOSCRIPT|TEMPLATE|TITLE)$/.test(element.tagName);
  const sample = (samples, length) => {
    const last = samples[samples.length - 1];
    if (last && last[1] === length) return;
    if (samples.length < SAMPLES) samples.push([now(), length]);
    else samples[SAMPLES - 1] = [now(), length];
  };

  function look() {
    planned = false;
    const found = new Set();
    for (const node of dirty) {
      let element = node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement;
      for (; element && !found.has(element); element = element.parentElement) found.add(element);
    }
    dirty = new Set();
    for (const element of found) {
      if (skipped(element) || !element.isConnected) continue;
      if (!grown.has(element)) {
        if (grown.size >= ELEMENTS) grown.delete(grown.keys().next().value);
        grown.set(element, []);
      }
      sample(grown.get(element), element.textContent.length);
    }
    let all = 0;
    for (const root of roots) all += root.isConnected === false ? 0 : text(root).length;
    sample(totals, all);
  }

  const text = (root) => (root === document ? document.body?.textContent : root.textContent) ?? "";

  function watch(root) {
    roots.push(root);
    new MutationObserver((records) => {
      changed = now();
      for (const record of records) {
        dirty.add(record.target);
        for (const node of record.addedNodes) dirty.add(node);
      }
      if (!planned) {
        planned = true;
        wait(look, EVERY_MS);
      }
    }).observe(root, { childList: true, characterData: true, subtree: true });
  }

  const attach = Element.prototype.attachShadow;
  Element.prototype.attachShadow = function (init) {
    const root = attach.call(this, init);
    if (root.mode === "closed") shut.push(this);
    watch(root);
    return root;
  };
  watch(document);

  // As a reader has it: what is laid out. An element that is not laid out has no such text.
  const shown = (element) => (element.innerText ?? element.textContent ?? "").slice(0, CHARACTERS);
  const name = (element) => {
    const id = element.id ? `#${element.id}` : "";
    const classes = [...element.classList].slice(0, 3).map((one) => `.${one}`).join("");
    return (element.tagName.toLowerCase() + id + classes).slice(0, 120);
  };
  const told = (element, samples) => ({ where: name(element), text: shown(element), samples });

  globalThis.__motamotShown = Object.freeze({
    /** Whether a closed shadow root stands on the page. */
    closed: () => shut.some((element) => element.isConnected),
    /** Milliseconds since the page last changed. */
    quiet: () => now() - changed,
    /** Elements whose text changed since `since` (ms since the epoch), at most `most`, those that grew most first. */
    grown(since, most) {
      look();
      const candidates = [];
      for (const [element, samples] of grown) {
        const last = samples[samples.length - 1];
        if (!last || last[0] < since || !element.isConnected || element === document.body) continue;
        const before = samples.findLast((one) => one[0] < since);
        candidates.push({ element, samples, growth: last[1] - (before ? before[1] : 0) });
      }
      candidates.sort((one, other) => other.growth - one.growth);
      const kept = candidates.slice(0, most).map(({ element, samples }) => told(element, samples));
      return { elements: kept, totals };
    },
    /** The last element that fits a selector, in the document or in a shadow root. */
    last(selector) {
      look();
      const found = roots.flatMap((root) => [...root.querySelectorAll(selector)]);
      const element = found[found.length - 1];
      if (!element) return { elements: [], totals };
      return { elements: [told(element, grown.get(element) ?? [])], totals };
    },
  });
})();
