// The page: what the reader does, what is asked and followed for it, and what other pages of the same visitor do.

import { Answer, newKey, refusal } from "./follow.js";
import { Remembered } from "./remember.js";
import { announce, ExchangeView, name, otherLanguage, say, Scroller, speak } from "./view.js";
import { languages, preferred } from "./words.js";

/** A question whose answer had not begun when the page went is asked again by itself for so long, in milliseconds. */
const UNSENT = 60_000;

const API = "api/"; // relative to this page, wherever the chat is mounted
const $ = (id) => document.getElementById(id);
const config = JSON.parse(document.documentElement.dataset.page); // as server/routes/page.py writes it

const assistant = chosenAssistant();
const conversation = new Remembered("sessionStorage", `conversation ${assistant.name}`, isText); // this page's
const latest = new Remembered("localStorage", `conversation ${assistant.name}`, isText); // what a new page shows
const unsent = new Remembered("sessionStorage", `unsent ${assistant.name}`, isQuestion); // until the server has it
const language = new Remembered("localStorage", "language", (kept) => languages.includes(kept));
const others = new BroadcastChannel(`motamot ${new URL(".", document.baseURI).pathname}`);

const views = new Map(); // exchange id → its view
const answers = new Map(); // view → the Answer it follows, while there is one
const scroller = new Scroller($("log"), $("content"), $("latest"));
let left = unsent.value; // what this page was asking when it went, until that is seen to
let hiddenAt = 0;

// Asking and following

/** Put a question, and show its answer in a new view, or in that of the answer it replaces. */
function ask(message, replaced = null) {
  const body = { message, key: newKey(), resumable: true, assistant: assistant.name };
  if (conversation.value !== null) body.conversation = conversation.value;
  if (replaced !== null && replaced.exchange !== "") body.replaces = replaced.exchange;
  post(body, replaced ?? newView(message));
  scroller.toEnd();
}

/** Post a question; the same one again joins the answer it may have got already. */
function post(body, view) {
  unsent.value = { body, at: Date.now() };
  follow(view, { body });
  announce("alert", ""); // what is said again is said again
  announce("status", "coming");
}

/** The server has the question, or has said no to it. */
function sent(body) {
  if (body !== null && unsent.value?.body.key === body.key) unsent.value = null;
}

/** Show an answer that somebody has asked for already: this page before it was reloaded, or another page. */
function join(exchange, view) {
  views.set(exchange, view);
  follow(view, { exchange });
}

function follow(view, { body = null, exchange = "" }) {
  view.begin();
  const over = () => {
    answers.delete(view);
    showBusy();
  };
  const tell = {
    event(said, number) {
      view.take(said, number);
      if (said.type === "started") started(said, view, body);
    },
    waiting: () => view.reconnecting(),
    connected: () => view.connected(),
    ended(said) {
      view.end(said);
      sent(body);
      over();
      if (said.outcome === "failed") announce("alert", said.code ?? "failed", said.message ?? "");
      else announce("status", said.outcome === "complete" ? "here" : said.outcome);
    },
    refused({ status, error, message }) {
      // A conversation that is gone takes no further questions: the next one begins another.
      if (status === 404) conversation.value = latest.value = null;
      const same = body !== null && status !== 404;
      const named = typeof error.limit === "string" ? error.limit : error.code; // a field's limit is a number
      fail(view, named, message, () => (same ? post(body, view) : again(view)));
      sent(body);
      over();
    },
    lost() {
      const goOn = () => {
        removeEventListener("online", goOn);
        if (view.element.isConnected && !answers.has(view)) resume(view, answer);
      };
      addEventListener("online", goOn);
      fail(view, "lost", "", goOn); // what was not sent stays so: a reload sends it
      over();
    },
  };
  const answer = new Answer(API, { body, exchange, heartbeat: config.heartbeat, tell: whileShown(view, tell) });
  run(view, answer);
}

/** What becomes of an answer matters as long as it is shown: it may be told after another conversation was begun. */
function whileShown(view, tell) {
  const bound = Object.entries(tell).map(([name, call]) => [
    name,
    (...said) => {
      if (view.element.isConnected) call(...said);
    },
  ]);
  return Object.fromEntries(bound);
}

function run(view, answer) {
  answers.set(view, answer);
  showBusy();
  answer.follow();
}

function resume(view, answer) {
  view.resume();
  run(view, answer);
}

function fail(view, name, told, retry) {
  view.fail(name, told);
  onRetry(view, retry);
  announce("alert", name, told);
}

function onRetry(view, retry) {
  view.retry = () => {
    focusQuestion(); // the button that has the focus goes
    retry();
  };
}

/** Ask once more what has failed: the new answer takes the old one's place, here and in later history. */
function again(view) {
  ask(view.question, view);
}

function started(said, view, body) {
  onRetry(view, () => again(view));
  views.set(said.exchange, view);
  conversation.value = latest.value = said.conversation;
  $("remove").hidden = false;
  if (body === null) return;
  sent(body);
  const { message, replaces } = body;
  others.postMessage({ conversation: said.conversation, exchange: said.exchange, message, replaces });
}

function newView(message) {
  const view = new ExchangeView(message);
  onRetry(view, () => again(view));
  $("exchanges").append(view.element);
  $("welcome").hidden = true;
  return view;
}

function stop() {
  for (const answer of answers.values()) answer.stop();
}

// The conversation as the server has it

/** Show what the server has and this page has not: after a reload, or after the page was asleep. */
async function load() {
  trouble("");
  const wanted = conversation.value;
  if (wanted === null) return askUnsent([]);
  $("welcome").hidden = true;
  let rows;
  try {
    const response = await fetch(`${API}conversations/${encodeURIComponent(wanted)}`, { cache: "no-store" });
    if (!response.ok && response.status !== 404) throw await refusal(response);
    rows = response.ok ? (await response.json()).exchanges : null;
  } catch {
    return trouble("load", load);
  }
  if (wanted !== conversation.value) return; // another was begun meanwhile
  if (rows === null) return forget();
  $("remove").hidden = false;
  showRows(rows);
  askUnsent(rows);
}

/** Show rows that are not shown, and each in its place: a question may have been put before they came. */
function showRows(rows) {
  const replaced = new Set(rows.map((row) => row.replaces));
  let place = $("exchanges").firstElementChild;
  for (const row of rows) {
    if (replaced.has(row.exchange)) continue;
    const { element } = views.get(row.exchange) ?? newRow(row);
    if (element !== place) $("exchanges").insertBefore(element, place);
    place = element.nextElementSibling;
  }
}

function newRow(row) {
  const view = views.get(row.replaces) ?? newView(row.question);
  if (row.outcome === null) {
    join(row.exchange, view);
    return view;
  }
  views.set(row.exchange, view);
  view.begin();
  view.fill(row);
  return view;
}

/** A question that was being posted when the page went may have arrived or not: posting it again is right both ways. */
function askUnsent(rows) {
  const kept = left;
  left = null;
  if (kept === null) return;
  if (rows.some((row) => row.key === kept.body.key)) return sent(kept.body);
  const view = newView(kept.body.message);
  if (Date.now() - kept.at < UNSENT) post(kept.body, view);
  else fail(view, "unsent", "", () => post(kept.body, view));
}

/** Begin anew, here; what runs is stopped. */
function forget() {
  stop();
  if (latest.value === conversation.value) latest.value = null;
  conversation.value = unsent.value = left = null;
  views.clear();
  $("exchanges").replaceChildren();
  $("welcome").hidden = false;
  $("remove").hidden = true;
  trouble("");
}

async function remove() {
  const gone = conversation.value;
  stop();
  try {
    const response = await fetch(`${API}conversations/${encodeURIComponent(gone)}`, { method: "DELETE" });
    if (!response.ok && response.status !== 404) throw await refusal(response);
  } catch {
    return trouble("removeFailed", remove);
  }
  others.postMessage({ conversation: gone, removed: true });
  if (conversation.value === gone) forget();
  focusQuestion();
}

/** Say what is wrong with the page itself; retry: what to do when the reader wants it tried again, if that may help. */
function trouble(what, retry = null) {
  const [told, button] = $("trouble").children;
  say(told, what);
  button.hidden = retry === null;
  button.onclick = () => {
    focusQuestion();
    retry();
  };
}

/** What other pages of this visitor did, in the conversation that is shown here. */
others.addEventListener("message", ({ data }) => {
  if (data.conversation !== conversation.value) return;
  if (data.removed) forget();
  else if (!views.has(data.exchange)) {
    join(data.exchange, views.get(data.replaces) ?? newView(data.message));
  }
});

// What the reader does

const question = $("question");

function send() {
  const message = question.value;
  if (answers.size > 0 || message.trim() === "") return;
  if (new TextEncoder().encode(message).length > config.message_bytes) {
    trouble("long"); // it stays where it can be shortened
    return;
  }
  trouble("");
  question.value = "";
  fit();
  ask(message);
}

function showBusy() {
  const busy = answers.size > 0;
  $("send").classList.toggle("busy", busy);
  name($("send"), busy ? "stop" : "send");
}

function fit() {
  question.style.height = "auto";
  question.style.height = `${question.scrollHeight + question.offsetHeight - question.clientHeight}px`;
}

function focusQuestion() {
  question.focus({ preventScroll: true });
}

question.addEventListener("input", fit);
question.addEventListener("keydown", (event) => {
  // keyCode 229: Safari ends a composition before the Enter that confirmed it.
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
  event.preventDefault();
  send();
});
$("send").addEventListener("mousedown", (event) => event.preventDefault()); // the focus stays where one writes
$("send").addEventListener("click", (event) => {
  event.preventDefault();
  if (event.detail > 1) return; // the second half of a double click: it would stop what the first half sent
  if (answers.size > 0) stop();
  else send();
  focusQuestion();
});
$("composer").addEventListener("submit", (event) => event.preventDefault());
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !event.isComposing && !$("sure").open) stop();
});
$("fresh").addEventListener("click", () => {
  forget();
  focusQuestion();
});
$("remove").addEventListener("click", () => {
  $("sure").returnValue = "";
  $("sure").showModal();
});
$("sure").addEventListener("close", () => {
  if ($("sure").returnValue === "remove") remove();
});
$("language").addEventListener("click", () => {
  language.value = otherLanguage();
  setLanguage(language.value);
});
$("assistants").addEventListener("change", () => {
  location.search = `?${new URLSearchParams({ assistant: $("assistants").value })}`;
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden) hiddenAt = Date.now();
  else if (answers.size === 0 && Date.now() - hiddenAt > 1000) load(); // what others said while it slept went unheard
});

// The start

function isText(kept) {
  return typeof kept === "string";
}

/** Whether it is `{body, at}`, as `post` writes it. */
function isQuestion({ body, at }) {
  return typeof at === "number" && isText(body?.message) && isText(body.key);
}

function chosenAssistant() {
  const wanted = new URLSearchParams(location.search).get("assistant");
  return config.assistants.find(({ name }) => name === wanted) ?? config.assistants[0];
}

function setLanguage(chosen) {
  speak(chosen);
  $("language").lang = otherLanguage();
}

function showAssistants() {
  for (const { name, title } of config.assistants) {
    $("assistants").append(new Option(title, name, false, name === assistant.name));
  }
  $("choice").hidden = config.assistants.length < 2;
  const heading = document.querySelector("h1");
  heading.textContent = document.title = assistant.title;
  heading.classList.toggle("unseen", !$("choice").hidden);
  $("model").hidden = assistant.marks.length === 0;
  for (const mark of assistant.marks) {
    const line = document.createElement("span");
    say(line, mark);
    $("model").append(line, " ");
  }
}

setLanguage(language.value ?? preferred(navigator.languages));
showAssistants();
showBusy();
conversation.value ??= latest.value;
if (matchMedia("(pointer: fine)").matches) focusQuestion();
load();
