// How far the confirmation at the provider is: asked for again and again, and what the signer does about it.
import { get, newRequestId, pause, persistently, post, Refused, Unreachable } from "../server/calls.js";

const WAITS = [1_000, 2_000, 4_000];
const AT_LEAST = 0.5; // seconds
/** Where only the signer can go on, another tab may have: seconds. */
const RESTING = { redirect: 3, question: 3, waiting: 2, refused: 6, failed: 6 };
const LONGEST_WAIT = 15; // seconds between two tries while the server cannot be reached

export class Confirmation extends EventTarget {
  #wake = () => {};
  #number = 0;
  #sent = { content: null, requestId: null };

  /** Tells `changed` when there is another `view`, `unreachable` and `reachable` of our own server. */
  constructor(view) {
    super();
    this.#take(view);
  }

  /** Looks on and on. Hidden pages look when they are seen again. */
  async watch() {
    document.addEventListener("visibilitychange", () => this.#wake());
    let failures = 0;
    for (;;) {
      const seconds = failures ? Math.min(2 ** failures, LONGEST_WAIT) : Math.max(this.view.poll_after, RESTING[this.view.step] ?? AT_LEAST, AT_LEAST);
      await Promise.race([pause(seconds * 1000), new Promise((resolve) => (this.#wake = resolve))]);
      if (document.visibilityState === "hidden") continue;
      const number = this.#number;
      try {
        const view = await get("confirmation");
        if (number === this.#number) this.#take(view); // else the signer did something meanwhile, and this is older
        failures = 0;
        this.dispatchEvent(new Event("reachable"));
      } catch (error) {
        if (error instanceof Refused) this.#take({ ...this.view, step: "none" });
        else if (!(error instanceof Unreachable)) throw error;
        failures += 1;
        if (failures > 1) this.dispatchEvent(new Event("unreachable"));
      }
    }
  }

  /** Looks now: time is up, or another window may have gone on. */
  look() {
    this.#wake();
  }

  /** The address of the provider's page; this browser may come back from there. */
  async address() {
    return (await post("confirmation/go", { ask: this.view.ask })).url;
  }

  answer(answers) {
    return this.#command("answer", { ask: this.view.ask, answers });
  }

  /** The same files, asked for anew: another code, another way to the provider. */
  again() {
    return this.#command("again", { about: this.view.ask });
  }

  /** Back to the fields. */
  async leave() {
    await this.#send("leave", {});
    this.#take({ ...this.view, step: "none" });
  }

  async #command(name, content) {
    this.#number += 1;
    try {
      this.#take(await this.#send(name, content));
    } finally {
      this.#number += 1; // what was asked for meanwhile is older
    }
  }

  /** Repeats it while the server is unreachable. A later press of the same button is the same command until it has arrived. */
  async #send(name, body) {
    const content = JSON.stringify([name, body, this.view.ask]);
    if (this.#sent.content !== content) this.#sent = { content, requestId: newRequestId() };
    try {
      const answer = await persistently(() => post(`confirmation/${name}`, { ...body, request_id: this.#sent.requestId }), WAITS);
      this.#sent = { content: null, requestId: null };
      return answer;
    } catch (error) {
      if (error instanceof Refused) this.#sent = { content: null, requestId: null };
      throw error;
    }
  }

  #take(view) {
    const before = this.view;
    const until = view.seconds_left === null ? null : Date.now() + view.seconds_left * 1000;
    this.view = { ...view, until, again_at: before?.again_at ?? 0 };
    if (before) this.dispatchEvent(new CustomEvent("changed", { detail: before }));
    this.#wake();
  }
}
