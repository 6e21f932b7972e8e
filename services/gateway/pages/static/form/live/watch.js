// Asks the server what has changed, as long as the page is open. Seldom while nobody looks at it; at once when somebody does
// again, when the network is back, and when another tab of the same browser says that it has sent something.
import { news, Refused } from "../server/calls.js";

const VISIBLE = 10_000;
const IDLE = 30_000; // nobody has touched the page for long
const IDLE_AFTER = 300_000;
const HIDDEN = 60_000; // doubled each time
const LONGEST = 600_000;
const LONGEST_FAILING = 120_000;
const TOUCHES = ["pointerdown", "keydown", "scroll"];

export class Watch {
  #known = null;
  #hiddenFor = 0;
  #failures = 0;
  #timer = null;
  #asking = false;
  #again = false;
  #touched = Date.now();
  #stopped = false;
  #channel = sameBrowser();

  /** `onNews(told, mark)`; `shown()` is what the page shows now; `mark()` notes what was so when the question was asked; `onGone()`
      when the link opens nothing any more. */
  constructor({ onNews, onGone, shown = () => null, mark = () => null }) {
    Object.assign(this, { onNews, onGone, shown, mark });
    for (const touch of TOUCHES) addEventListener(touch, () => (this.#touched = Date.now()), { passive: true, capture: true });
    document.addEventListener("visibilitychange", () => {
      this.#hiddenFor = 0;
      if (document.visibilityState === "visible") this.ask();
      else this.#wait();
    });
    addEventListener("online", () => this.ask());
    this.#channel?.addEventListener("message", () => this.ask());
    this.#wait();
  }

  /** Other tabs with the same form look at once. */
  tellOthers() {
    this.#channel?.postMessage("changed");
  }

  stop() {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  /** What the last answer said is to be said again. */
  forget() {
    this.#known = null;
  }

  async ask() {
    if (this.#stopped) return;
    if (this.#asking) {
      this.#again = true;
      return;
    }
    this.#asking = true;
    clearTimeout(this.#timer);
    try {
      const mark = this.mark();
      const told = await news(this.#known, this.shown());
      this.#failures = 0;
      if (told && !this.#stopped) {
        this.#known = told.version;
        await this.onNews(told, mark);
      }
    } catch (error) {
      if (error instanceof Refused && [403, 404].includes(error.status)) {
        this.stop();
        this.onGone();
        return;
      }
      this.#failures += 1;
    } finally {
      this.#asking = false;
    }
    if (this.#again) {
      this.#again = false;
      this.ask();
    } else this.#wait();
  }

  #wait() {
    clearTimeout(this.#timer);
    if (this.#stopped) return;
    // Not all pages at the same moment, after the server was away.
    this.#timer = setTimeout(() => this.ask(), this.#pause() * (0.9 + Math.random() * 0.2));
  }

  #pause() {
    if (this.#failures) return Math.min(VISIBLE * 2 ** this.#failures, LONGEST_FAILING);
    if (document.visibilityState === "hidden") return Math.min(HIDDEN * 2 ** this.#hiddenFor++, LONGEST);
    return Date.now() - this.#touched > IDLE_AFTER ? IDLE : VISIBLE;
  }
}

/** Missing in some pages in a frame. */
function sameBrowser() {
  try {
    return new BroadcastChannel(`form:${location.pathname}`);
  } catch {
    return null;
  }
}
