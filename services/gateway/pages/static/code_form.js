// Sends a one-time code and takes what the signer types.
import { newRequestId, pause, post, Refused, Unreachable } from "./form/server/calls.js";
import { announce } from "./form/dom.js";
import { count, t } from "./form/texts.js";

const LOOKS = 10;
const LOOK_WAIT = 4_000;
const PROBLEMS = {
  wrong: "code.wrong",
  expired: "code.expired",
  used: "code.used",
  none: "code.none",
  too_many: "code.too_many",
};

/**
 * Makes the form in `place` work. `send` and `check` are the calls under this page's address, `body()` what goes along with
 * both, `onPassed(say)` is called when the code was right. `mayAsk()` false keeps a code from being sent. `wasDelivered()` says
 * whether the code could be delivered, as far as is known. `onField(null, text)` says what is wrong with the rest of a form.
 */
export function codeForm(place, { send, check, body, onPassed, mayAsk = () => true, wasDelivered = null, onField = null }) {
  const part = (name) => place.querySelector(`#code-${name}`);
  const [sendButton, form, input, problem, again, wait] = ["send", "form", "input", "problem", "again", "wait"].map(part);
  let busy = false;
  let request = null; // the same for a repetition after a lost answer
  let mayAskAt = 0;
  let watched = 0;

  sendButton.addEventListener("click", ask);
  again.addEventListener("click", ask);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    go();
  });
  input.addEventListener("input", () => {
    request = null;
    say("");
    if (/^\s*(\d[\s-]*){6}$/.test(input.value)) go();
  });
  if (place.dataset.failed === "yes") say(t("code.failed"));
  if (place.dataset.sent === "yes") typing(Number(place.dataset.wait));
  else {
    sendButton.hidden = false;
    waitFor(Number(place.dataset.wait));
  }

  async function ask() {
    if (busy || !mayAsk()) return;
    await working(async () => {
      const sent = await post(send, { request_id: newRequestId(), ...body() });
      input.value = "";
      typing(sent.retry_after);
      if (wasDelivered) watch(++watched);
      announce(t("code.sent", { address: sent.sent_to }));
    });
  }

  /** A code that cannot be delivered need not be waited for. */
  async function watch(number) {
    for (let look = 0; look < LOOKS; look += 1) {
      await pause(LOOK_WAIT);
      if (number !== watched) return;
      try {
        if (!(await wasDelivered())) return say(t("code.failed"));
      } catch (error) {
        if (!(error instanceof Refused) && !(error instanceof Unreachable)) throw error;
      }
    }
  }

  async function go() {
    if (busy) return;
    if (!/\d/.test(input.value)) return say(t("code.missing"));
    request ??= newRequestId();
    await working(async () => {
      const answer = await post(check, { request_id: request, code: input.value, ...body() });
      await onPassed(say, answer);
    });
  }

  async function working(attempt) {
    busy = true;
    place.setAttribute("aria-busy", "true");
    say("");
    try {
      await attempt();
    } catch (error) {
      if (!(error instanceof Refused) && !(error instanceof Unreachable)) throw error;
      explain(error);
    } finally {
      busy = false;
      place.removeAttribute("aria-busy");
    }
  }

  function explain(error) {
    const detail = error.details?.[0] ?? {};
    if (detail.field === "state") location.reload();
    else if (detail.field === "code" && detail.reason === "wrong" && detail.tries_left > 0) {
      say(`${t("code.wrong")} ${count("code.left", detail.tries_left)}`);
      input.select();
    } else if (detail.field === "code" && PROBLEMS[detail.reason]) say(t(PROBLEMS[detail.reason]));
    else if (detail.retry_after) waitFor(detail.retry_after);
    else if (onField && detail.field) onField(null, error.message);
    else say(error instanceof Refused ? error.message : t("code.unreachable"));
  }

  function typing(seconds) {
    sendButton.hidden = true;
    form.hidden = false;
    part("hint").after(problem); // right below the code: what is further down lies behind a phone's keyboard
    part("again-place").hidden = false;
    waitFor(seconds);
    input.focus();
  }

  /** Another code may be asked for only after some time: the buttons wait for it. */
  function waitFor(seconds) {
    mayAskAt = Date.now() + seconds * 1000;
    tick();
  }

  function tick() {
    const left = Math.ceil((mayAskAt - Date.now()) / 1000);
    sendButton.disabled = again.disabled = left > 0;
    wait.textContent = left > 0 ? count("code.wait", left) : "";
    if (left > 0) setTimeout(tick, 1000);
  }

  function say(text) {
    problem.textContent = text;
    input.setAttribute("aria-invalid", text ? "true" : "false");
  }
}
