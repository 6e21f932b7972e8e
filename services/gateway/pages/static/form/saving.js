// Sends answers to the server, step by step, until they have arrived. Steps never wait for it.
import { newRequestId, pause, post, Refused } from "./calls.js";

const WAITS = [1_000, 2_000, 4_000, 8_000, 15_000];

/** `onStatus("saving" | "saved" | "unsaved" | "refused")`, `onRefused(error, values)` when the server said no. */
export class Saver {
  #pending = {};
  #running = null;
  #stopped = false;

  constructor({ onStatus, onSaved, onRefused }) {
    this.onStatus = onStatus;
    this.onSaved = onSaved;
    this.onRefused = onRefused;
  }

  get unsaved() {
    return Object.keys(this.#pending).length > 0;
  }

  save(values) {
    if (this.#stopped || !Object.keys(values).length) return;
    Object.assign(this.#pending, values);
    this.#running ??= this.#run().finally(() => (this.#running = null));
  }

  /** Sends what is left while the page goes away; it may not arrive, the drafts are still there then. */
  leave() {
    if (!this.unsaved || this.#stopped) return;
    post("values", { request_id: newRequestId(), values: this.#pending }, { keepalive: true }).catch(() => {});
  }

  /** Nothing more is sent; resolves when what is under way has ended. */
  async stop() {
    this.#stopped = true;
    await this.#running;
  }

  resume() {
    this.#stopped = false;
    if (this.unsaved) this.save({ ...this.#pending });
  }

  async #run() {
    let failures = 0;
    while (this.unsaved && !this.#stopped) {
      const values = this.#pending;
      this.#pending = {};
      try {
        if (!failures) this.onStatus("saving");
        await post("values", { request_id: newRequestId(), values });
        failures = 0;
        this.onSaved(values);
        if (!this.unsaved) this.onStatus("saved");
      } catch (error) {
        if (error instanceof Refused) {
          this.onStatus("refused");
          this.onRefused(error, values);
          continue;
        }
        this.#pending = { ...values, ...this.#pending }; // newer answers win
        this.onStatus("unsaved");
        if (!this.#stopped) await pause(WAITS[Math.min(failures, WAITS.length - 1)]);
        failures += 1;
      }
    }
  }
}
