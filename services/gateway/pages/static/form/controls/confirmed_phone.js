// A phone number that the signer confirms with a code which is sent to it.
import { newRequestId, post, Refused, Unreachable } from "../server/calls.js";
import { announce, button, el } from "../dom.js";
import { count, t } from "../texts.js";
import { problemWith } from "../values/validation.js";
import { Incomplete } from "./incomplete.js";

/** `plain` is the control of the number itself; the code is asked for below it. */
export function confirmedPhone(field, context, input, plain) {
  const memory = context.memory; // a code that is on its way survives going elsewhere and coming back
  const codeInput = el("input", {
    id: `${context.id}-code`,
    class: "input input--code",
    type: "text",
    inputmode: "numeric",
    autocomplete: "one-time-code",
    maxlength: "20",
    "aria-describedby": context.describedBy,
  });
  const send = button(t("phone.ask"), () => busily(ask), "button--small");
  const wait = el("p", { class: "hint", "aria-live": "off" });
  const code = el("div", { class: "phone-number__code" }, el("label", { for: codeInput.id }, t("phone.code_label")), codeInput);
  const done = el("p", { class: "phone-number__done" }, `✓ ${t("phone.confirmed")}`);
  const node = el("div", { class: "phone-number" }, input, done, el("div", {}, send), wait, code);
  input.addEventListener("input", show);
  codeInput.addEventListener("input", () => {
    context.onProblem("");
    if (/^\s*(\d[\s-]*){6}$/.test(codeInput.value)) busily(check);
  });
  show();
  tick();
  return {
    ...plain,
    node,
    commit,
    focus: () => (code.hidden ? input : codeInput).focus(),
    get wrong() {
      return code.hidden ? null : codeInput;
    },
  };

  /** Nothing to confirm in an empty field. */
  async function commit() {
    if (!number() || isConfirmed() || problemWith(field, context.state.value(field.uuid))) return;
    if (memory.sentTo === number() && /\d/.test(codeInput.value)) await check();
    else throw new Incomplete(t(memory.sentTo === number() ? "phone.enter" : "phone.confirm"));
  }

  async function ask() {
    const wrong = problemWith(field, context.state.value(field.uuid));
    if (!number() || wrong) throw new Incomplete(wrong ?? t("problem.phone"));
    const phone = number();
    const sent = await attempt(() => post("code/send", { request_id: newRequestId(), phone }));
    memory.sentTo = phone;
    memory.mayAskAt = Date.now() + sent.retry_after * 1000;
    codeInput.value = "";
    show();
    tick();
    announce(t("code.sent", { address: phone }));
    codeInput.focus();
  }

  async function check() {
    const phone = number();
    await attempt(() => post("code", { request_id: newRequestId(), code: codeInput.value, phone }));
    field.confirmed = phone;
    memory.sentTo = null;
    show();
    announce(t("phone.confirmed"));
  }

  async function attempt(call) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof Refused) && !(error instanceof Unreachable)) throw error;
      throw new Incomplete(explained(error), { cause: error });
    }
  }

  function explained(error) {
    const detail = error.details?.[0] ?? {};
    if (detail.reason === "wrong" && detail.tries_left > 0) return `${t("code.wrong")} ${count("code.left", detail.tries_left)}`;
    if (detail.retry_after) return count("code.wait", detail.retry_after);
    return (error instanceof Refused && error.message) || t("code.unreachable");
  }

  async function busily(work) {
    context.onProblem("");
    context.onBusy(true);
    try {
      await work();
    } catch (error) {
      if (!(error instanceof Incomplete)) throw error;
      context.onProblem(error.message);
    } finally {
      context.onBusy(false);
    }
  }

  function number() {
    return input.value.replace(/[\s().\-/]/g, "");
  }

  function isConfirmed() {
    return Boolean(field.confirmed) && field.confirmed === number();
  }

  function show() {
    const confirmed = isConfirmed();
    done.hidden = !confirmed;
    send.hidden = wait.hidden = confirmed;
    code.hidden = confirmed || memory.sentTo !== number();
    send.textContent = t(memory.sentTo ? "phone.ask_again" : "phone.ask");
  }

  function tick() {
    const left = memory.sentTo === number() ? Math.ceil(((memory.mayAskAt ?? 0) - Date.now()) / 1000) : 0;
    send.disabled = left > 0;
    wait.textContent = left > 0 ? count("code.wait", left) : "";
    if (left > 0 && (node.isConnected || !memory.ticked)) {
      memory.ticked = true;
      setTimeout(tick, 1000);
    }
  }
}
