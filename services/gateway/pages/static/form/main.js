// The signing page: puts its parts together.
import "../language.js";
import { page, persistently, post } from "./server/calls.js";
import { keepChanges, showChanges } from "./changes.js";
import { Live } from "./live/live.js";
import { lastProblem } from "./controls/verification.js";
import { Completing, reasonText, timeZone } from "./completing.js";
import { announce, dataOf, el } from "./dom.js";
import { framed, tell, who } from "./embedding.js";
import { DocumentView } from "./document/document_view.js";
import { Drafts } from "./server/drafts.js";
import { FormState } from "./form_state.js";
import { Panel } from "./panel/panel.js";
import { startedEarly } from "./panel/start_screen.js";
import { openRefusalDialog } from "./panel/refusal_dialog.js";
import { Saver } from "./server/saving.js";
import { t } from "./texts.js";
import { watchRoom } from "./room.js";
import { wakeMenu } from "./ways/menu.js";

const MAY_LIVE_AGAIN = new Set(["expired", "archived", "waiting", "returned"]);

const form = dataOf("form-data");
page.shown = form.shown;
const drafts = new Drafts();
const state = new FormState(form, drafts);
const place = document.getElementById("panel");
const declineButton = document.getElementById("decline");
const savingStatus = document.getElementById("saving");

const saver = new Saver({
  onStatus: (status) => {
    if (savingStatus.dataset.status === status) return;
    savingStatus.textContent = t(`saving.${status}`);
    savingStatus.dataset.status = status;
    if (status === "unsaved" || status === "refused") announce(savingStatus.textContent);
  },
  onSaved: (values) => {
    drafts.forget(values);
    live.savedHere(values);
  },
  onRefused: refused,
});

const panel = new Panel(place, state, {
  onSave: (values) => saver.save(values),
  onComplete: () => completing.complete(),
  onWrongRecipient: (opener) => openRefusalDialog("wrong_recipient", opener, traffic, showState),
  beforeLeaving: () => saver.settled(),
  onShow: (field) => {
    drafts.stayAt(field?.uuid ?? null);
    view.show(field);
  },
});
const view = new DocumentView(document.getElementById("document"), state, (field) => panel.ask(field));

/** Rests while a call is under way that may end the form: whatever came after that call would be refused. */
const traffic = {
  stop: () => Promise.all([saver.stop(), view.pictures.stop()]),
  resume() {
    saver.resume();
    view.pictures.resume();
  },
};
const completing = new Completing(state, traffic, panel, {
  onDone: done,
  onChanged: showState,
  onChangedMeanwhile: lookAgain,
});

const live = new Live({ form, state, panel, view, saver, completing, place, onEnded: showState, onChanged: lookAgain });
page.onEnded = showState;

watchRoom(document.querySelector(".top"), view.top, place, () => view.follow());
wakeMenu({ form, saver, traffic, leaveStep: () => panel.leave(), onChanged: showState });
declineButton?.addEventListener("click", () => openRefusalDialog("decline", declineButton, traffic, showState));

history.scrollRestoration = "manual"; // the page that follows, and this one anew, begin at the top
addEventListener("beforeunload", (event) => {
  if (saver.unsaved) event.preventDefault();
});
addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState !== "hidden") return;
  panel.leave();
  saver.leave();
});

// What a reload found unsaved in this tab.
const unsaved = state.steps().filter((field) => Object.keys(state.answersTo(field)).some((key) => drafts.has(key)) && !state.problem(field));
saver.save(Object.assign({}, ...unsaved.map((field) => state.answersTo(field))));

comeBack();
if (startedEarly()) panel.start();
showChanges(state, view, place);

persistently(() => post("view", { time_zone: timeZone() }), [1_000, 5_000, 20_000]).catch(() => {});

/** From the identity provider, to the field that led there. */
function comeBack() {
  const [, uuid] = /^#field=(.+)$/.exec(location.hash) ?? [];
  if (!uuid) return;
  history.replaceState(null, "", location.pathname + location.search);
  const field = state.steps().find((step) => step.uuid === uuid);
  if (field) panel.ask(field, lastProblem(field, form));
}

function refused(error, values) {
  if (error.changedMeanwhile) {
    lookAgain(error);
    return;
  }
  if (error.formChanged) {
    showState(error.state);
    return;
  }
  const [detail] = error.details;
  const field = (detail && state.fieldNamed(detail.field)) ?? state.byUuid.get(Object.keys(values)[0]);
  panel.refusedByServer(field, reasonText(field, detail?.reason ?? error.message));
}

/** Declined, expired, withdrawn, completed: the page of the server says which. What was typed stays where it may be needed again. */
async function showState(ended = "") {
  live.watch.stop();
  live.watch.tellOthers();
  await saver.finish();
  if (!MAY_LIVE_AGAIN.has(ended)) drafts.clear();
  location.reload();
}

/** The sender has changed what is to be signed: it is shown anew, with what is another now. Nothing that was typed is lost. */
async function lookAgain(error) {
  keepChanges(error.details, state);
  await saver.finish();
  location.reload();
}

/** The signer's own answers, for a page around this one. What was attached or signed stays here. */
function valuesByName() {
  const said = state.steps().filter(({ name, uuid }) => name && !state.attachments.has([state.value(uuid)].flat()[0]));
  return Object.fromEntries(said.map(({ name, uuid }) => [name, state.value(uuid)]));
}

async function done() {
  const address = form.completed_redirect_url;
  tell("completed", { ...who(valuesByName()), redirect_url: address });
  if (!address || framed) {
    showState();
    return;
  }
  live.watch.tellOthers();
  await saver.finish();
  drafts.clear();
  const { host } = new URL(address);
  const sentence = t("completing.redirect", { host });
  const link = el("a", { class: "button button--main", href: address, rel: "noreferrer" }, t("completing.continue", { host }));
  place.replaceChildren(el("div", { class: "start" }, el("p", {}, sentence), link));
  announce(sentence);
  location.assign(address);
}
