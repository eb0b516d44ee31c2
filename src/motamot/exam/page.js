// What a page shows, and when: how the text of each of its elements grew. Runs before the page's own scripts, in each
// of its frames, and changes nothing of them but `attachShadow`, which goes on to work: an observer of the document
// does not see into shadow roots, where chat widgets live, and neither do `textContent` and `innerText`.
(() => {
  "use strict";
  if (globalThis.__motamotShown) return;
  const EVERY_MS = 40; // between two looks: shorter than anybody notices
  const ELEMENTS = 5000;
  const SAMPLES = 5000; // of one element
  const CHARACTERS = 2000000; // of one element's text that is told
  const ROOTS = 2000; // shadow roots that are watched
  const DIRTY = 20000; // elements that are looked at together; of more, those that hold them tell enough
  const DEPTH = 500; // of elements in one another that are laid out here; deeper, as they are written
  const wait = setTimeout.bind(globalThis);
  const now = () => performance.timeOrigin + performance.now();
  const grown = new Map(); // element: [[when, characters], …]
  const totals = []; // of all roots together
  const roots = [];
  const rootOf = new WeakMap(); // host: its shadow root, also a closed one
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

  // What an element stands in: another one, or the host of its shadow root.
  const around = (node) => node.parentElement ?? (node.parentNode instanceof ShadowRoot ? node.parentNode.host : null);

  // An element and all that it stands in, up to what is marked already.
  function mark(element, marked) {
    for (; element && !marked.has(element); element = around(element)) marked.add(element);
  }

  const shadows = () => roots.filter((root) => root !== document && root.isConnected);

  // Of two elements, which comes first on the page: by where they, or the hosts that hold them, stand beside each other.
  function order(one, other) {
    const path = (element) => {
      const hosts = [element];
      for (let root = element.getRootNode(); root instanceof ShadowRoot; root = root.host.getRootNode()) {
        hosts.unshift(root.host);
      }
      return hosts;
    };
    const [left, right] = [path(one), path(other)];
    const at = left.findIndex((element, place) => element !== right[place]);
    if (at < 0 || !right[at]) return left.length - right.length;
    return left[at].compareDocumentPosition(right[at]) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1;
  }

  function look() {
    planned = false;
    const found = new Set();
    for (const node of dirty) mark(node.nodeType === Node.ELEMENT_NODE ? node : around(node), found);
    dirty = new Set();
    const within = new Map(); // element: characters in the shadow roots that it holds
    let all = document.body?.textContent.length ?? 0;
    for (const root of shadows()) {
      let length = root.textContent.length;
      for (const style of root.querySelectorAll("style, script")) length -= style.textContent.length;
      all += length;
      for (let host = root.host; host && length; host = around(host)) {
        within.set(host, (within.get(host) ?? 0) + length);
      }
    }
    for (const element of found) {
      if (skipped(element) || !element.isConnected) continue;
      if (!grown.has(element)) {
        if (grown.size >= ELEMENTS) grown.delete(grown.keys().next().value);
        grown.set(element, []);
      }
      sample(grown.get(element), element.textContent.length + (within.get(element) ?? 0));
    }
    sample(totals, all);
  }

  // Shadow roots that no script attached: a template in the HTML is one, when it is parsed.
  function discover(node) {
    if (node.shadowRoot && !rootOf.has(node)) watch(node.shadowRoot);
    for (const element of node.querySelectorAll?.("*") ?? []) {
      if (element.shadowRoot && !rootOf.has(element)) watch(element.shadowRoot);
    }
  }

  function watch(root) {
    if (roots.length > ROOTS) return;
    roots.push(root);
    if (root.host) {
      rootOf.set(root.host, root);
      discover(root);
      dirty.add(root.host);
    }
    new MutationObserver((records) => {
      changed = now();
      for (const record of records) {
        if (dirty.size < DIRTY) dirty.add(record.target);
        for (const node of record.addedNodes) {
          if (dirty.size < DIRTY) dirty.add(node);
          discover(node);
        }
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

  // Elements whose text stands in part in shadow roots, or that show text of another place in a slot.
  function deep() {
    const found = new Set();
    for (const root of shadows()) {
      mark(root.host, found);
      for (const slot of root.querySelectorAll("slot")) mark(slot, found);
    }
    return found;
  }

  // As a reader has it: what is laid out. An element that is not laid out has no such text. `innerText` is that, but
  // for elements that hold shadow roots or slots: these are put together here of their parts.
  const flat = (element) => element.innerText ?? element.textContent ?? "";
  function shown(element, parts) {
    if (!parts.has(element)) return flat(element).slice(0, CHARACTERS);
    const pieces = [];
    let size = 0;
    const add = (piece) => {
      if (piece && size < CHARACTERS) pieces.push(piece);
      size += piece.length;
    };
    const lay = (node, depth) => {
      if (size >= CHARACTERS) return;
      if (node.nodeType === Node.TEXT_NODE) {
        const holder = node.parentElement ?? around(node);
        const { whiteSpace, visibility } = getComputedStyle(holder);
        if (visibility !== "visible") return;
        if (/^(pre|pre-wrap|break-spaces)$/.test(whiteSpace)) add(node.data);
        else add(node.data.replace(whiteSpace === "pre-line" ? /[ \t]+/g : /[ \t\r\n\f]+/g, " "));
        return;
      }
      if (node.nodeType !== Node.ELEMENT_NODE || node.tagName === "TEXTAREA") return;
      const { display } = getComputedStyle(node);
      if (display === "none") return;
      const end = /^(inline|contents|table-cell)/.test(display) ? "" : "\n";
      add(end);
      if (node.tagName === "BR") add("\n");
      else if (!parts.has(node) || depth > DEPTH) add(flat(node));
      else {
        const slotted = node.tagName === "SLOT" ? node.assignedNodes() : [];
        const inside = slotted.length ? slotted : (rootOf.get(node) ?? node).childNodes;
        for (const child of inside) lay(child, depth + 1);
      }
      add(display === "table-cell" ? "\t" : end);
    };
    lay(element, 0);
    return pieces.join("").slice(0, CHARACTERS);
  }
  const name = (element) => {
    const id = element.id ? `#${element.id}` : "";
    const classes = [...element.classList].slice(0, 3).map((one) => `.${one}`).join("");
    return (element.tagName.toLowerCase() + id + classes).slice(0, 120);
  };
  const told = (element, samples, parts) => ({ where: name(element), text: shown(element, parts), samples });

  const tells = Object.freeze({
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
      const parts = deep();
      const kept = candidates.slice(0, most).map(({ element, samples }) => told(element, samples, parts));
      return { elements: kept, totals };
    },
    /** The last element that fits a selector, in the document or in a shadow root. */
    last(selector) {
      look();
      const found = roots.map((root) => (root.isConnected ? [...root.querySelectorAll(selector)].pop() : null));
      const element = found.filter(Boolean).sort(order).pop();
      if (!element) return { elements: [], totals };
      return { elements: [told(element, grown.get(element) ?? [], deep())], totals };
    },
  });
  // The page cannot put something else in its place.
  Object.defineProperty(globalThis, "__motamotShown", { value: tells });
})();
