// The step after the last field where each signer signs with a certificate of their own: they confirm at its provider. Their answers
// are shown as they will be signed, and cannot be changed meanwhile.
import "./language.js";
import { Confirmation } from "./form/confirming/confirmation.js";
import { leftOf, screenOf, statusOf } from "./form/confirming/screen.js";
import { announce, dataOf, el } from "./form/dom.js";
import { DocumentView } from "./form/document/document_view.js";
import { FormState } from "./form/form_state.js";
import { folding } from "./form/panel/folding.js";
import { openRefusalDialog } from "./form/panel/refusal_dialog.js";
import { watchRoom } from "./form/room.js";
import { page, pause, Refused, Unreachable } from "./form/server/calls.js";
import { count, t } from "./form/texts.js";

const NOTHING_TO_SAVE = { stop() {}, resume() {} };
const NO_DRAFTS = { entries: () => [], place: null };
const SOON = 60_000; // milliseconds
const GOING = 15_000;
const BUSY = new Set(["preparing", "signing"]);

const form = dataOf("form-data");
page.shown = form.shown;
const state = new FormState({ ...form, fields: form.fields.map((field) => ({ ...field, mine: false })) }, NO_DRAFTS);
const place = document.getElementById("panel");
const declineButton = document.getElementById("decline");
const panelScreen = place.querySelector(".panel__screen");
const fold = folding(place);
const view = new DocumentView(document.getElementById("document"), state, () => {});
const confirmation = new Confirmation(form.confirmation);
const documents = form.documents.filter((one) => state.isShown(one)).map(({ name }) => name);
let shown = null;
let busy = false;
let warned = 0;

const act = {
  go: () => working(leave),
  answer: (answers) => working(() => confirmation.answer(answers)),
  again: () => working(() => confirmation.again()),
  leave: () => working(() => confirmation.leave()),
};

watchRoom(document.querySelector(".top"), view.top, place, () => view.follow());
declineButton.addEventListener("click", () => openRefusalDialog("decline", declineButton, NOTHING_TO_SAVE, () => location.reload()));
confirmation.addEventListener("changed", ({ detail: before }) => changed(before));
confirmation.addEventListener("unreachable", () => say(t("confirm.unreachable")));
confirmation.addEventListener("reachable", () => shown.problem.textContent === t("confirm.unreachable") && say(""));
addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});
if (isOver(confirmation.view)) setTimeout(() => location.reload(), 1000); // it has ended while the page was made
else {
  setInterval(tick, 1000);
  show();
  confirmation.watch();
}

function changed(before) {
  const now = confirmation.view;
  if (now.step === "completed") return done();
  if (now.step === "none") return location.reload();
  const same = ["step", "ask", "problem", "signed", "holder"].every((key) => before[key] === now[key]);
  if (same) return tick();
  show();
}

function isOver({ step }) {
  return step === "completed" || step === "none";
}

function show() {
  // Values are drawn as they will be on paper while the page rests; a form that is completed meanwhile has nothing more to draw.
  if (BUSY.has(confirmation.view.step)) view.pictures.stop();
  else view.pictures.resume();
  const inside = panelScreen.contains(document.activeElement) || document.activeElement === document.body;
  const words = statusOf(confirmation.view);
  shown = screenOf(confirmation.view, {
    documents,
    framed: window.self !== window.top,
    here: location.pathname,
    act,
  });
  fold(false);
  panelScreen.replaceChildren(shown.node);
  panelScreen.scrollTop = 0;
  if (inside) shown.first().focus({ preventScroll: true });
  if (!shown.problem.textContent) announce(words); // the problem is an alert, which is read by itself
  tick();
}

/** The time that is left, to confirm and to ask for another code. */
function tick() {
  const now = confirmation.view;
  const left = shown.node.querySelector(".confirm__left");
  left.textContent = leftOf(now);
  if (now.until !== null && now.until <= Date.now()) confirmation.look();
  else if (now.until !== null && now.until - Date.now() < SOON && warned !== now.ask) {
    warned = now.ask;
    announce(t("confirm.soon"));
  }
  const another = shown.node.querySelector(".confirm__another");
  if (!another) return;
  const wait = Math.ceil((now.again_at - Date.now()) / 1000);
  another.disabled = busy || wait > 0;
  shown.node.querySelector(".confirm__wait").textContent = wait > 0 ? count("code.wait", wait) : "";
}

/** Nothing else can be pressed while something is under way. */
async function working(attempt) {
  if (busy) return;
  setBusy(true);
  say("");
  try {
    await attempt();
  } catch (error) {
    if (!(error instanceof Refused) && !(error instanceof Unreachable)) throw error;
    explain(error);
  } finally {
    setBusy(false);
  }
}

function explain(error) {
  const early = error.details.find(({ retry_after: seconds }) => seconds);
  if (early) confirmation.view.again_at = Date.now() + early.retry_after * 1000;
  if (early) return tick();
  if (error instanceof Unreachable) return say(t("confirm.unreachable"));
  if (error.formChanged) return location.reload();
  say(error.message);
}

async function leave() {
  const url = await confirmation.address();
  announce(t("confirm.going", { provider: confirmation.view.provider }));
  location.assign(url);
  await pause(GOING); // until the page has gone
}

function done() {
  const address = form.completed_redirect_url;
  if (!address) return location.reload();
  const { host } = new URL(address);
  const link = el("a", { class: "button button--main", href: address, rel: "noreferrer" }, t("completing.continue", { host }));
  panelScreen.replaceChildren(el("div", { class: "start" }, el("p", {}, t("completing.redirect", { host })), link));
  announce(t("completing.redirect", { host }));
  location.assign(address);
}

function say(text) {
  shown.problem.textContent = text;
}

function setBusy(value) {
  busy = value;
  for (const control of shown.node.querySelectorAll("button")) control.disabled = value;
  place.classList.toggle("panel--busy", value);
  if (!value) tick();
}
