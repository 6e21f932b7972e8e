// The form beside the document: it asks for one field after the other.
import { Incomplete } from "../controls/incomplete.js";
import { CONTROLS } from "../controls/index.js";
import { isEmpty } from "../values/empty.js";
import { refuseWithoutConsent } from "./consent.js";
import { computedAnswers } from "./computed.js";
import { announce, button, cleanedHtml, el } from "../dom.js";
import { tell, who } from "../embedding.js";
import { folding } from "./folding.js";
import { isComputed, mayComplete } from "../form_state.js";
import { refuseWithoutInvited } from "./invite.js";
import { review } from "./review.js";
import { fillStartScreen, wakeStartScreen } from "./start_screen.js";
import { t, tFor } from "../texts.js";

export class Panel {
  #field = null;
  #control = null;
  #memories = new Map();
  #sent = new Map();
  #serverProblems = new Map();
  #uncommitted = false;
  #busy = 0;
  #screen = "start";

  /** `onSave(values)`, `onComplete()`, `onWrongRecipient(opener)`, `onShow(field)` when another field is asked for; `beforeLeaving()` when a field leads to
      another site: true once nothing is lost by it. */
  constructor(place, state, { onSave, onComplete, onWrongRecipient, onShow, beforeLeaving }) {
    Object.assign(this, { place, state, onSave, onComplete, onShow, beforeLeaving });
    this.screen = place.querySelector(".panel__screen");
    this.fold = folding(place);
    state.addEventListener("changed", ({ detail }) => this.#answered(detail));
    state.addEventListener("judged", ({ detail }) => this.#judged(detail));
    wakeStartScreen(this.screen, state, mayComplete(state) ? () => this.start() : null, onWrongRecipient);
  }

  /** From the first field, or from where they left off: where this tab was, else the first field that needs an answer or the
      one after the last answer. */
  start() {
    tell("started", who());
    const steps = this.state.steps();
    let number = Math.max(0, steps.findIndex(({ uuid }) => uuid === this.state.drafts.place));
    if (!this.state.drafts.place && this.state.resumed) {
      const needed = steps.findIndex((field) => this.state.problem(field));
      const after = steps.findLastIndex((field) => !isEmpty(this.state.value(field.uuid))) + 1;
      number = needed < 0 ? after : Math.min(needed, after);
    }
    if (number < steps.length) this.ask(steps[number]);
    else this.review();
  }

  /** Something was drawn or typed that is no answer yet, or is on its way. */
  get engaged() {
    return this.#uncommitted || this.#busy > 0;
  }

  /** What is on the screen was changed from elsewhere: the start, the overview, or one of the fields `uuids`. */
  renew(uuids = []) {
    if (this.engaged) return;
    if (this.#screen === "start") fillStartScreen(this.screen, this.state);
    else if (this.#screen === "review") this.review();
    else if (uuids.includes(this.#field?.uuid)) this.ask(this.#field);
  }

  /** Asks for `field`; `problem` says what is wrong with the answer that is there. */
  ask(field, problem = this.#serverProblems.get(field.uuid) ?? this.state.undrawable.get(field.uuid) ?? "") {
    this.leave();
    this.state.sketch([], null);
    this.#field = field;
    this.#screen = "field";
    this.#uncommitted = false;
    this.#busy = 0;
    this.#show(this.#step(field));
    this.onShow(field);
    this.#control.focus();
    const { number, total } = this.#position(field);
    announce(this.#progressText(field, number, total));
    this.#say(problem);
  }

  review() {
    this.leave();
    this.state.sketch([], null);
    this.#field = null;
    this.computed = null;
    this.#uncommitted = false;
    this.#screen = "review";
    const steps = this.state.steps();
    const back = steps.length ? () => this.ask(steps.at(-1)) : null;
    const screen = review(this.state, { onChange: (field) => this.ask(field), onBack: back, onComplete: this.onComplete });
    this.#show(screen);
    this.onShow(null);
    screen.querySelector("h2").focus();
  }

  /** Sends the answer that is being left, when it is a good one. */
  leave() {
    if (this.#field && !this.state.problem(this.#field)) this.#save(this.#field);
  }

  /** Finishes the step: true when its answer can be taken, else the signer is told why not. */
  async finishStep() {
    if (!this.#field) return true;
    if (this.#busy) return false;
    const field = this.#field;
    try {
      this.#setBusy(true);
      await this.#control.commit?.();
    } catch (error) {
      if (!(error instanceof Incomplete)) throw error;
      this.#refuse(error.message);
      return false;
    } finally {
      this.#setBusy(false);
    }
    if (this.#field !== field) return false; // the signer went elsewhere in the meantime
    const problem = this.state.problem(field) ?? this.#serverProblems.get(field.uuid);
    if (problem) this.#refuse(problem);
    return !problem;
  }

  /** What the last page itself asks for: true when it is there, else the signer is told what is missing. */
  finishReview() {
    if (!this.state.needsReview) return true;
    if (this.#field) {
      this.review();
      return false;
    }
    return refuseWithoutInvited(this.state, this.screen) && refuseWithoutConsent(this.state, this.screen);
  }

  /** What was computed may not be so: it follows from the answers, which are all shown. */
  refuseComputed(field, reason) {
    this.review();
    this.tell(`${field.label}: ${reason}`);
  }

  /** The server has refused the answer to `field`. */
  refusedByServer(field, reason) {
    if (isComputed(field)) {
      this.review();
      this.tell(reason);
      return;
    }
    this.#serverProblems.set(field.uuid, reason);
    this.ask(field);
    announce(reason);
  }

  /** A sentence about completing, above the buttons; `working` while nothing may be pressed. */
  tell(text, working = false) {
    const place = this.place.querySelector(".panel__message");
    if (place) place.textContent = text;
    this.#busy = 0;
    if (working) this.#setBusy(true);
    else this.#setBusy(false);
  }

  #show(node) {
    this.fold(false);
    this.screen.replaceChildren(node);
    this.screen.scrollTop = 0;
  }

  #step(field) {
    const id = `answer-${field.uuid}`;
    const title = this.#title(field, id);
    this.problemPlace = el("p", { class: "problem", id: `${id}-problem`, role: "alert" });
    this.#control = CONTROLS[field.type](field, this.#contextOf(field, id));
    const notes = [this.#control.hint, this.state.isRequired(field) ? "" : t("step.optional")].filter(Boolean).join(" ");
    const beside = Boolean(this.#control.takeTitle);
    this.#control.takeTitle?.(title);
    const step = el(
      "form",
      { class: "step", novalidate: true, on: { submit: (event) => this.#submit(event) } },
      this.#progress(field),
      beside ? null : title,
      cleanedHtml(el("div", { class: "step__description", id: `${id}-description` }), field.description_html),
      this.#control.node,
      el("p", { class: "hint", id: `${id}-hint` }, notes),
      this.problemPlace,
      this.#computed(field),
      el("p", { class: "panel__message", role: "status" }),
      this.#buttons(field),
    );
    this.label = title.querySelector("label");
    this.#nameControl();
    return step;
  }

  /** What is computed from the answer to `field`. */
  #computed(field) {
    this.computed = computedAnswers(this.state, field);
    return this.computed.node;
  }

  #contextOf(field, id) {
    if (!this.#memories.has(field.uuid)) this.#memories.set(field.uuid, {});
    return {
      id,
      describedBy: `${id}-description ${id}-hint ${id}-problem`,
      state: this.state,
      value: this.state.value(field.uuid),
      required: this.state.isRequired(field),
      memory: this.#memories.get(field.uuid),
      onInput: (value) => this.state.set(field.uuid, value),
      onBusy: (busy) => this.#field === field && this.#setBusy(busy),
      onProblem: (text) => this.#field === field && this.#say(text),
      onSketch: (fields, make) => this.#field === field && this.state.sketch(fields, make),
      onAdopted: (places, value) => this.#adopt(places, value),
      onUncommitted: (uncommitted) => {
        this.#uncommitted = uncommitted;
        if (uncommitted) this.#say("");
        this.#offerComplete();
      },
      beforeLeaving: () => this.beforeLeaving(),
      onLabels: () => this.#field === field && this.#nameControl(),
    };
  }

  /** What was made for one field goes into others as well, which are then not asked for one by one. */
  #adopt(places, value) {
    for (const place of places) {
      this.state.set(place.uuid, value);
      this.state.adopted.add(place.uuid);
      this.#save(place);
    }
  }

  #title(field, id) {
    const label = el("label", { id: `${id}-title` });
    if (field.title_html) cleanedHtml(label, field.title_html);
    else label.textContent = field.label;
    return el("h2", { class: "step__title" }, label);
  }

  /** The label belongs to an input, or names what is no input. */
  #nameControl() {
    const named = this.#control?.labels;
    this.label?.removeAttribute("for");
    if (!named || !this.label) return;
    if (named.matches("input, select, textarea")) this.label.htmlFor = named.id;
    else named.setAttribute("aria-labelledby", this.label.id);
  }

  #progress(field) {
    const { number, total } = this.#position(field);
    return el(
      "div",
      { class: "progress" },
      el("p", { class: "progress__text" }, this.#progressText(field, number, total)),
      el("progress", { class: "progress__bar", value: number, max: total, "aria-hidden": true }),
    );
  }

  /** With the page, where there are several. */
  #progressText(field, number, count) {
    const page = this.state.pageOf(field);
    return page ? t("step.progress_page", { number, count, page }) : t("step.progress", { number, count });
  }

  #position(field) {
    const steps = this.state.steps();
    return { number: steps.indexOf(field) + 1, total: steps.length };
  }

  #buttons(field) {
    const { number } = this.#position(field);
    const back = button(t("step.back"), () => this.ask(this.state.steps()[number - 2]));
    this.nextButton = el("button", { type: "submit", class: "button button--main" }, t("step.next"));
    this.completeButton = button(tFor(this.state.form, "step.complete"), () => this.onComplete(), "button--main buttons__whole");
    this.statement = el("p", { class: "soft buttons__whole" }, this.state.form.statement);
    this.#offerComplete();
    return el("div", { class: "buttons" }, number > 1 ? back : null, this.nextButton, this.statement, this.completeButton);
  }

  /** On the last field everything may be done at once; Next leads to the overview of the answers. */
  #offerComplete() {
    if (!this.#field || !this.completeButton) return;
    const last = this.state.steps().at(-1) === this.#field && !this.state.needsReview;
    const offered = last && (this.#uncommitted || !this.state.problem(this.#field));
    // Its place is kept while one draws: on a phone the pad would move away under the finger.
    for (const node of [this.statement, this.completeButton]) {
      node.hidden = !last || !(offered || this.#control.keepsStill);
      node.classList.toggle("invisible", !offered);
    }
    this.nextButton.classList.toggle("button--main", !offered);
  }

  #answered(uuid) {
    this.#serverProblems.delete(uuid);
    if (this.#field && uuid in this.state.answersTo(this.#field)) {
      this.#serverProblems.delete(this.#field.uuid);
      this.#say("");
    }
    this.computed?.refresh();
    const progress = this.place.querySelector(".progress");
    if (progress && this.#field) progress.replaceWith(this.#progress(this.#field));
    this.#offerComplete();
  }

  /** What was typed has no place on the document: said while it can still be changed. */
  #judged(field) {
    if (this.#field !== field) return;
    this.#say(this.state.undrawable.get(field.uuid) ?? "");
    this.#offerComplete();
  }

  async #submit(event) {
    event.preventDefault();
    const field = this.#field;
    if (!(await this.finishStep())) return;
    const steps = this.state.steps();
    const following = steps.slice(steps.indexOf(field) + 1).find(({ uuid }) => !this.state.adopted.has(uuid));
    if (following) this.ask(following);
    else this.review();
  }

  #save(field) {
    const answers = this.state.answersTo(field);
    const content = JSON.stringify(answers);
    if (this.#sent.get(field.uuid) === content) return;
    this.#sent.set(field.uuid, content);
    this.onSave(answers);
  }

  #setBusy(busy) {
    this.#busy = Math.max(0, this.#busy + (busy ? 1 : -1));
    for (const control of this.place.querySelectorAll(".buttons button")) control.disabled = this.#busy > 0;
    this.place.classList.toggle("panel--busy", this.#busy > 0);
  }

  #refuse(text) {
    this.#control.focus();
    this.#say(text);
  }

  #say(text) {
    if (!this.problemPlace) return;
    this.#write(text);
    const named = this.#control?.wrong ?? this.#control?.labels;
    if (text) named?.setAttribute("aria-invalid", "true");
    else named?.removeAttribute("aria-invalid");
    if (text) this.problemPlace.scrollIntoView({ block: "nearest" });
  }

  /** A problem that is solved by drawing leaves its room empty until the next step: the pad stays under the finger. */
  #write(text) {
    const { offsetHeight, classList, style } = this.problemPlace;
    const keeps = !text && offsetHeight > 0 && this.#control?.keepsStill;
    classList.toggle("invisible", Boolean(keeps));
    style.minHeight = keeps ? `${offsetHeight}px` : "";
    this.problemPlace.textContent = keeps ? "\u00a0" : text;
  }
}
