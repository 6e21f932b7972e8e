// One dialog for each way: what it means, what is asked, and the button that does it.
import { announce, button, el } from "../dom.js";
import { newRequestId, persistently, post, Refused, Unreachable } from "../server/calls.js";
import { t } from "../texts.js";

const WAITS = [1_000, 2_000, 4_000];

/**
 * `texts`: `heading`, `intro`, `go`. `inputs` are those of `labelledInput`. `call` is sent what they hold, once however often it is
 * tried; then `onDone(dialog, answer)`. `settle`: what was typed is saved before. `check()` says which input is wrong, and why: `[input, sentence]`, or null.
 */
export function openWayDialog({ call, texts, inputs, check = () => null, danger = false, settle = false, context, onDone }) {
  const { saver, traffic, onChanged, opener } = context;
  const requestId = newRequestId();
  const problem = el("p", { class: "problem", role: "alert" });
  const cancel = button(t("wrong_recipient.cancel"), () => dialog.close());
  const go = el("button", { type: "submit", class: `button ${danger ? "button--danger" : "button--main"}` }, texts.go);
  const heading = el("h2", { class: "step__title", id: "way-heading" }, texts.heading);
  const form = el(
    "form",
    { novalidate: true },
    heading,
    el("p", {}, texts.intro),
    inputs.flatMap((input) => input.nodes),
    problem,
    el("div", { class: "buttons" }, cancel, go),
  );
  const dialog = el("dialog", { class: "dialog", "aria-labelledby": "way-heading" }, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (go.disabled) return;
    const wrong = check();
    if (wrong) return refuse(...wrong);
    go.disabled = cancel.disabled = true;
    problem.textContent = "";
    try {
      if (settle) await saver.settled();
      await traffic.stop();
      const said = Object.fromEntries(inputs.map(({ name, input }) => [name, input.value.trim()]));
      onDone(dialog, await persistently(() => post(call, { request_id: requestId, ...said }), WAITS));
    } catch (error) {
      if (error instanceof Refused && error.formEnded) return onChanged();
      go.disabled = cancel.disabled = false;
      traffic.resume();
      const named = error instanceof Refused ? inputs.find(({ name }) => name === error.details[0]?.field) : null;
      if (named) refuse(named, error.details[0].reason);
      else problem.textContent = error instanceof Refused ? error.message : t(isTooOften(error) ? "way.too_often" : "decline.failed");
    }
  });
  dialog.addEventListener("close", () => {
    dialog.remove();
    opener.focus();
  });
  document.body.append(dialog);
  dialog.showModal();
  inputs[0]?.input.focus();
  return dialog;

  function refuse({ input, problem: place }, sentence) {
    input.setAttribute("aria-invalid", "true");
    place.textContent = sentence;
    announce(sentence);
    input.focus();
  }
}

const isTooOften = (error) => error instanceof Unreachable && error.details.some((detail) => "retry_after" in detail);

/** It is done, and the form goes on: what happened is said in the dialog's place. */
export function sayInstead(dialog, heading, sentence) {
  const close = button(t("document.close"), () => dialog.close(), "button--main");
  const said = el("div", {}, el("h2", { class: "step__title", id: "way-heading" }, heading), el("p", {}, sentence), el("div", { class: "buttons" }, close));
  dialog.replaceChildren(said);
  announce(sentence);
  close.focus();
}

/** An input with its label, perhaps a hint, and room for what is wrong with it. */
export function labelledInput(name, label, attributes = {}, hint = null) {
  const id = `way-${name}`;
  const problem = el("p", { class: "problem", id: `${id}-problem`, role: "alert" });
  const { tag = "input", ...more } = attributes;
  const input = el(tag, {
    autocomplete: "off",
    ...more,
    id,
    class: "input",
    "aria-describedby": hint ? `${id}-problem ${id}-hint` : `${id}-problem`,
    on: {
      input: () => {
        input.removeAttribute("aria-invalid");
        problem.textContent = "";
      },
    },
  });
  const nodes = [
    el("label", { for: id, class: "dialog__label" }, label),
    input,
    hint ? el("p", { class: "soft", id: `${id}-hint` }, hint) : null,
    problem,
  ];
  return { name, input, problem, nodes };
}
