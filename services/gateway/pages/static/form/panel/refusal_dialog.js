// Declining, or being the wrong person: asked once more, with a reason.
import { newRequestId, persistently, post, Refused } from "../server/calls.js";
import { button, el } from "../dom.js";
import { tell, who } from "../embedding.js";
import { t } from "../texts.js";

const WAITS = [1_000, 2_000, 4_000];
const LONGEST_REASON = 5_000;

/** `kind` is `decline` or `wrong_recipient`: the call, and what its texts begin with. `onChanged()` when that is done, or the
    form is no longer open for another reason. */
export function openRefusalDialog(kind, opener, traffic, onChanged) {
  const requestId = newRequestId();
  const reason = el("textarea", { id: "refusal-reason", class: "input", dir: "auto", rows: 3, maxlength: LONGEST_REASON });
  const problem = el("p", { class: "problem", role: "alert" });
  const cancel = button(t(`${kind}.cancel`), () => dialog.close());
  const confirm = el("button", { type: "submit", class: "button button--danger" }, t(`${kind}.button`));
  const form = el(
    "form",
    { novalidate: true },
    el("h2", { class: "step__title", id: "refusal-heading" }, t(`${kind}.heading`)),
    el("p", {}, t(`${kind}.intro`)),
    el("label", { for: "refusal-reason", class: "dialog__label" }, t(`${kind}.reason`)),
    reason,
    problem,
    el("div", { class: "buttons" }, cancel, confirm),
  );
  const dialog = el("dialog", { class: "dialog", "aria-labelledby": "refusal-heading" }, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (confirm.disabled) return;
    confirm.disabled = cancel.disabled = true;
    problem.textContent = "";
    try {
      await traffic.stop();
      await persistently(() => post(kind, { request_id: requestId, reason: reason.value }), WAITS);
      if (kind === "decline") tell("declined", who());
      onChanged();
    } catch (error) {
      if (error instanceof Refused && error.formChanged) return onChanged();
      problem.textContent = error instanceof Refused ? error.message : t(`${kind}.failed`);
      confirm.disabled = cancel.disabled = false;
      traffic.resume();
    }
  });
  dialog.addEventListener("close", () => {
    dialog.remove();
    opener.classList.remove("invisible");
    opener.focus();
  });
  document.body.append(dialog);
  dialog.showModal();
  opener.classList.add("invisible"); // one button of that name at a time
  reason.focus();
}
