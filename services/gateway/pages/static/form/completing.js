// The last step, sent exactly once: a repetition after a lost answer carries the same request id.
import { answersBody, newRequestId, persistently, post, Refused } from "./server/calls.js";
import { announce } from "./dom.js";
import { count, t, tFor } from "./texts.js";

const WAITS = [1_000, 2_000, 4_000, 8_000, 15_000];

export class Completing {
  #running = null;
  #sent = { content: null, requestId: null };

  /**
   * `onDone()` when the form is completed; `onChanged()` when it is no longer open for another reason; `onChangedMeanwhile(error)`
   * when the sender has changed what is to be signed.
   */
  constructor(state, traffic, panel, { onDone, onChanged, onChangedMeanwhile }) {
    Object.assign(this, { state, traffic, panel, onDone, onChanged, onChangedMeanwhile });
  }

  get running() {
    return this.#running !== null;
  }

  /** However often it is asked for, it runs once at a time. */
  complete() {
    this.#running ??= this.#run().finally(() => (this.#running = null));
    return this.#running;
  }

  async #run() {
    if (!(await this.panel.finishStep())) return;
    const problems = this.state.problems();
    if (problems.length) {
      this.panel.ask(problems[0], this.state.problem(problems[0]));
      announce(count("completing.missing", problems.length));
      return;
    }
    const wrong = this.state.computedFields().find((field) => this.state.computedProblem(field));
    if (wrong) {
      this.panel.refuseComputed(wrong, this.state.computedProblem(wrong));
      return;
    }
    if (!this.panel.finishReview()) return;
    const confirms = Boolean(this.state.form.confirm_with);
    this.panel.tell(t(confirms ? "confirm.starting" : "completing.working"), true);
    try {
      await this.traffic.stop();
      await this.#send(confirms);
      if (confirms) this.onChanged(); // the page of the next step
      else this.onDone();
    } catch (error) {
      this.#failed(error);
      this.traffic.resume();
    }
  }

  #send(confirms) {
    const values = this.state.answers();
    const more = { consent: this.state.consent, statement: this.state.form.statement };
    if (this.state.invited.size) more.submitters = [...this.state.invited].map(([uuid, person]) => ({ uuid, ...person }));
    const content = JSON.stringify([values, more]);
    if (this.#sent.content !== content) this.#sent = { content, requestId: newRequestId() };
    const body = { ...answersBody(values), ...more, request_id: this.#sent.requestId, time_zone: timeZone() };
    const call = confirms ? "confirmation/start" : more.submitters ? "invite" : "complete";
    return persistently(() => post(call, body), WAITS, () => this.panel.tell(t("completing.retrying"), true));
  }

  #failed(error) {
    this.panel.tell(tFor(this.state.form, "completing.failed"));
    if (!(error instanceof Refused)) return;
    this.#sent = { content: null, requestId: null };
    if (error.changedMeanwhile) {
      this.onChangedMeanwhile(error);
      return;
    }
    if (error.formChanged) {
      this.onChanged(error.state);
      return;
    }
    const ofFields = error.details.filter(({ field }) => field !== "consent" && !field?.startsWith("submitters"));
    const named = ofFields.map(({ field, reason }) => [this.state.fieldNamed(field), reason]).find(([field]) => field);
    if (named) this.panel.refusedByServer(named[0], reasonText(named[0], named[1]));
    else this.panel.tell(error.message);
  }
}

/** A server's reason continues a sentence that begins with the field's name, unless it is a sentence itself. */
export function reasonText(field, reason) {
  if (!reason) return t("problem.server");
  return /^[\p{Ll}]/u.test(reason) ? `${field.label}: ${reason}` : reason;
}

export function timeZone() {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}
