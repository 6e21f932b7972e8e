// Declining: asked once more, with a reason.
import { newRequestId, persistently, post, Refused } from "./calls.js";
import { button, el } from "./dom.js";
import { t } from "./texts.js";

const WAITS = [1_000, 2_000, 4_000];
const LONGEST_REASON = 5_000;

/** `onChanged()` when the form is declined, or no longer open for another reason. */
export function openDeclineDialog(opener, saver, onChanged) {
  const requestId = newRequestId();
  const reason = el("textarea", { id: "decline-reason", class: "input", dir: "auto", rows: 3, maxlength: LONGEST_REASON });
  const problem = el("p", { class: "problem", role: "alert" });
  const cancel = button(t("decline.cancel"), () => dialog.close());
  const confirm = el("button", { type: "submit", class: "button button--danger" }, t("decline.button"));
  const form = el(
    "form",
    { novalidate: true },
    el("h2", { class: "step__title", id: "decline-heading" }, t("decline.heading")),
    el("p", {}, t("decline.intro")),
    el("label", { for: "decline-reason", class: "dialog__label" }, t("decline.reason")),
    reason,
    problem,
    el("div", { class: "buttons" }, cancel, confirm),
  );
  const dialog = el("dialog", { class: "dialog" }, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (confirm.disabled) return;
    confirm.disabled = cancel.disabled = true;
    problem.textContent = "";
    try {
      await saver.stop();
      await persistently(() => post("decline", { request_id: requestId, reason: reason.value }), WAITS);
      onChanged();
    } catch (error) {
      if (error instanceof Refused && error.formChanged) return onChanged();
      problem.textContent = error instanceof Refused ? error.message : t("decline.failed");
      confirm.disabled = cancel.disabled = false;
      saver.resume();
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
