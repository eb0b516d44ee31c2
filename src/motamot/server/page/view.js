// What the reader sees. Everything that a server, a model or a visitor wrote becomes text nodes, and nothing else.

import { languages, words } from "./words.js";

/** The element of a template's copy that has this class. */
const within = (root, name) => root.querySelector(`.${name}`);

// Words in the reader's language, which may change while they are shown

let language = "en";

/** Change the language, of what is shown too. */
export function speak(chosen) {
  language = chosen;
  document.documentElement.lang = chosen;
  for (const element of document.querySelectorAll("[data-words]")) relabel(element);
  for (const element of document.querySelectorAll("[data-label]")) relabel(element);
}

/** The language after this one. */
export function otherLanguage() {
  return languages[(languages.indexOf(language) + 1) % languages.length];
}

/** Let an element say these words, and go on saying them in whatever language is chosen. told: see `words`. */
export function say(element, name, told = "") {
  element.dataset.words = name;
  element.dataset.told = told;
  relabel(element);
}

/** Let an element without words of its own (a button with a picture) be called this by who hears it. */
export function name(element, label) {
  element.dataset.label = label;
  relabel(element);
}

function relabel(element) {
  const { words: said, told = "", label, placeholder } = element.dataset;
  if (said !== undefined) element.textContent = words(language, said, told);
  if (label !== undefined) element.setAttribute("aria-label", words(language, label));
  if (placeholder !== undefined) element.placeholder = words(language, placeholder);
}

/** Say it once to who listens to the page and does not see it. kind: `status` waits for a pause, `alert` does not. */
export function announce(kind, name, told = "") {
  const region = document.getElementById(kind);
  if (region.dataset.words !== name || region.dataset.told !== told) say(region, name, told);
}

// One question and its answer

const TOOL_WORDS = { ok: "tool_ok" };
const SOURCE_SCHEMES = ["http:", "https:"]; // what a link that a model wrote may lead to
const RETRIED = ["failed", "interrupted", "abandoned"];

/**
 * Characters after which the answer goes on in another text node: a browser then lays out again little of what stands.
 * (100 kB without a line end, 200 pieces a second, in Chromium: no frame over 75 ms; in one node, tasks of 120 ms.)
 */
const NODE_CHARACTERS = 4000;

/**
 * A question and its answer, as an item of the list.
 *
 * exchange: its id, "" until the server has said it. retry: what to do when the reader wants it tried again.
 */
export class ExchangeView {
  exchange = "";
  retry = () => {};
  question;
  element;
  #answer;
  #text;
  #node; // the text node under way
  #waiting = ""; // what came since the last frame
  #frame = 0;
  #ends = []; // [number of an event, characters of text with it]: to show as much as the transcript does
  #length = 0;
  #tools = new Map();

  constructor(question) {
    this.question = question;
    this.element = document.getElementById("exchange").content.firstElementChild.cloneNode(true);
    within(this.element, "asked").textContent = question;
    this.#answer = within(this.element, "answer");
    this.#text = within(this.element, "text");
    this.#node = this.#newNode();
    within(this.element, "retry").addEventListener("click", () => this.retry());
    for (const element of this.element.querySelectorAll("[data-words]")) relabel(element);
  }

  /** The text of the answer that stands on the page. */
  get text() {
    this.#flush();
    return this.#text.textContent;
  }

  #newNode() {
    return this.#text.appendChild(document.createTextNode(""));
  }

  /** The answer is awaited, anew: nothing of an earlier try stays. */
  begin() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#waiting = "";
    this.#ends = [];
    this.#length = 0;
    this.#tools.clear();
    this.#text.replaceChildren();
    this.#node = this.#newNode();
    for (const name of ["agent", "tools", "sources", "thoughts"]) within(this.element, name).replaceChildren();
    this.#unend();
    this.#show("reasoning", false);
    this.resume();
  }

  /** The answer goes on coming. */
  resume() {
    this.#answer.setAttribute("aria-busy", "true");
    this.#unend();
    say(within(this.element, "hint"), "waiting");
    this.#show("wait", true);
  }

  #unend() {
    for (const name of ["mark", "marks"]) within(this.element, name).replaceChildren();
    delete within(this.element, "mark").dataset.words;
    this.#answer.removeAttribute("data-outcome");
    this.#show("end", false);
    this.#show("retry", false);
  }

  #show(name, shown) {
    within(this.element, name).hidden = !shown;
  }

  /** The connection was lost and will be tried again. */
  reconnecting() {
    say(within(this.element, "hint"), "again");
    this.#show("wait", true);
  }

  /** There is a connection, and the answer will come by it. */
  connected() {
    say(within(this.element, "hint"), "waiting");
    this.#show("wait", this.text === "");
  }

  /** One event of the answer. */
  take(said, number) {
    switch (said.type) {
      case "started":
        this.exchange = said.exchange;
        break;
      case "text":
        this.#append(String(said.text));
        this.#ends.push([number, this.#length]);
        break;
      case "reasoning":
        this.#show("reasoning", true);
        within(this.element, "thoughts").append(String(said.text));
        break;
      case "routed":
        within(this.element, "agent").textContent = String(said.agent);
        break;
      case "tool_called":
        this.#tool(said.id, said.name, "tool");
        break;
      case "tool_returned":
        this.#tool(said.id, said.name, TOOL_WORDS[said.status] ?? "tool_failed");
        break;
      case "cited":
        within(this.element, "sources").append(source(said));
        break;
      default: // a kind that this page does not show
    }
  }

  /** Text goes to the page once a frame, however many pieces came meanwhile: a page that is hidden has no frames. */
  #append(text) {
    this.#waiting += text;
    this.#length += text.length;
    if (this.#frame === 0) this.#frame = requestAnimationFrame(() => this.#flush());
  }

  #flush() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    if (this.#waiting === "") return;
    this.#show("wait", false);
    if (this.#node.length > NODE_CHARACTERS) this.#node = this.#newNode();
    this.#node.appendData(this.#waiting);
    this.#waiting = "";
  }

  #tool(id, name, state) {
    let item = this.#tools.get(id);
    if (item === undefined) {
      item = document.createElement("li");
      item.append(document.createElement("span"), " ", String(name));
      this.#tools.set(id, item);
      within(this.element, "tools").append(item);
    }
    say(item.firstElementChild, state);
  }

  /** An answer as the transcript has it. */
  fill({ exchange, text, outcome, code, message, marks }) {
    this.exchange = exchange;
    this.#append(text);
    this.end({ outcome, code, message, marks });
  }

  /** The answer has ended; said: the `ended` event. */
  end({ outcome, code, message, marks = [], shown }) {
    this.#flush();
    if (outcome === "stopped" && shown !== undefined) this.#cut(shown);
    within(this.element, "marks").replaceChildren();
    for (const mark of marks) {
      const item = document.createElement("li");
      say(item, String(mark));
      within(this.element, "marks").append(item);
    }
    const known = outcome === "failed" ? (code ?? "failed") : outcome;
    if (outcome !== "complete") this.#close(outcome, known, outcome === "failed" ? (message ?? "") : "");
    else if (this.text.trim() === "") this.#close(outcome, "empty");
    else this.#close(outcome, "");
  }

  /** The question was not taken, or its answer was lost. name, told: as for `words`. */
  fail(name, told = "") {
    this.#flush();
    this.#close("failed", name, told);
  }

  #close(outcome, name, told = "") {
    this.#answer.setAttribute("aria-busy", "false");
    this.#answer.dataset.outcome = outcome;
    this.#show("wait", false);
    for (const item of this.#tools.values()) {
      if (item.firstElementChild.dataset.words === "tool") say(item.firstElementChild, "tool_failed");
    }
    if (name !== "") say(within(this.element, "mark"), name, told);
    this.#show("retry", RETRIED.includes(outcome));
    this.#show("end", name !== "" || within(this.element, "marks").childElementCount > 0);
  }

  /** Show the text up to and with event `number`: so much was seen, and so much the transcript keeps. */
  #cut(number) {
    const [, length] = this.#ends.findLast(([event]) => event <= number) ?? [0, 0];
    if (length === this.#length) return;
    this.#text.textContent = this.text.slice(0, length);
    this.#node = this.#newNode();
    this.#length = length;
  }
}

function source({ title, url, quote }) {
  const item = document.createElement("li");
  let link = document.createElement("span");
  try {
    const address = new URL(url);
    if (SOURCE_SCHEMES.includes(address.protocol)) {
      link = document.createElement("a");
      link.href = address.href;
      link.rel = "noopener noreferrer nofollow";
      link.target = "_blank";
    }
  } catch {
    // no address, or none that can be followed
  }
  link.textContent = String(title);
  item.append(link);
  if (typeof quote === "string") item.append(" ", Object.assign(document.createElement("q"), { textContent: quote }));
  return item;
}

// Scrolling

const NEAR = 4; // CSS pixels from the end that still count as the end: zoom makes fractions

/**
 * Keeps the end of the conversation in view for as long as the reader is there; once they have scrolled up, the page
 * never moves what they read, and `button` leads back.
 */
export class Scroller {
  #area;
  #button;
  #following = true;
  #last = 0;

  constructor(area, content, button) {
    this.#area = area;
    this.#button = button;
    area.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    button.addEventListener("click", () => {
      this.toEnd();
      area.focus({ preventScroll: true }); // the button goes, the focus may not go with it
    });
    const grown = new ResizeObserver(() => this.#grown());
    grown.observe(area);
    grown.observe(content);
  }

  /** Go to the end, and stay there. */
  toEnd() {
    this.#following = true;
    this.#grown();
  }

  /** The content or the view has another size; emptied, it is at its end without having been scrolled. */
  #grown() {
    if (this.#following) this.#area.scrollTop = this.#area.scrollHeight;
    this.#following = this.#following || this.#atEnd();
    this.#button.hidden = this.#following;
  }

  #scrolled() {
    const { scrollTop } = this.#area;
    if (this.#atEnd()) this.#following = true;
    else if (scrollTop < this.#last) this.#following = false;
    this.#last = scrollTop;
    this.#button.hidden = this.#following;
  }

  #atEnd() {
    const { scrollTop, scrollHeight, clientHeight } = this.#area;
    return scrollHeight - clientHeight - scrollTop <= NEAR;
  }
}
