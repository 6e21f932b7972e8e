// Sends answers to the server, step by step, until they have arrived. Steps never wait for it.
import { answersBody, pause, post, Refused } from "./calls.js";

const WAITS = [1_000, 2_000, 4_000, 8_000, 15_000];

/** `onStatus("saving" | "saved" | "unsaved" | "refused")`, `onRefused(error, values)` when the server said no. */
export class Saver {
  #pending = {};
  #sending = {};
  #running = null;
  /** How often something was sent, also in vain. */
  sent = 0;
  #stopped = false;
  #wake = () => {};

  constructor({ onStatus, onSaved, onRefused }) {
    this.onStatus = onStatus;
    this.onSaved = onSaved;
    this.onRefused = onRefused;
  }

  get unsaved() {
    return this.#waiting || Object.keys(this.#sending).length > 0;
  }

  get #waiting() {
    return Object.keys(this.#pending).length > 0;
  }

  save(values) {
    Object.assign(this.#pending, values);
    if (this.#stopped || !this.#waiting) return;
    this.#running ??= this.#run().finally(() => (this.#running = null));
  }

  /** True once all answers have arrived, false when they have not within `patience` milliseconds. */
  async settled(patience = 10_000) {
    if (this.#running) await Promise.race([this.#running, pause(patience)]);
    return !this.unsaved;
  }

  /** Sends what is left while the page goes away; it may not arrive, the drafts are still there then. */
  leave() {
    if (!this.unsaved || this.#stopped) return;
    const values = { ...this.#sending, ...this.#pending };
    post("values", answersBody(values), { keepalive: true }).catch(() => {});
  }

  /** Nothing more is sent; resolves when what is under way has ended. */
  async stop() {
    this.#stopped = true;
    this.#wake();
    await this.#running;
  }

  /** The answers have arrived otherwise, or are of no use any more. */
  async finish() {
    await this.stop();
    this.#pending = {};
  }

  resume() {
    this.#stopped = false;
    this.save({});
  }

  async #run() {
    let failures = 0;
    while (this.#waiting && !this.#stopped) {
      this.#sending = this.#pending;
      this.sent += 1;
      this.#pending = {};
      const failed = await this.#send(this.#sending, failures > 0);
      // What could not be sent waits again; newer answers win.
      if (failed) this.#pending = { ...this.#sending, ...this.#pending };
      this.#sending = {};
      failures = failed ? failures + 1 : 0;
      if (!failed) continue;
      this.onStatus("unsaved");
      const wait = WAITS[Math.min(failures, WAITS.length) - 1];
      if (!this.#stopped) await Promise.race([pause(wait), new Promise((resolve) => (this.#wake = resolve))]);
    }
  }

  /** True when nobody could be reached. */
  async #send(values, again) {
    try {
      if (!again) this.onStatus("saving");
      await post("values", answersBody(values));
    } catch (error) {
      if (!(error instanceof Refused)) return true;
      this.#sending = {};
      this.onStatus("refused");
      this.onRefused(error, values);
      return false;
    }
    this.onSaved(values);
    if (!this.#waiting) this.onStatus("saved");
    return false;
  }
}
