// Sending the form back to the sender, to be corrected.
import { t } from "../texts.js";
import { labelledInput, openWayDialog } from "./way_dialog.js";

export function openReturn(context) {
  const reason = labelledInput("reason", t("return.reason"), { tag: "textarea", dir: "auto", rows: 4, maxlength: 5_000 });
  openWayDialog({
    call: "return",
    texts: { heading: t("return.button"), intro: t("return.intro"), go: t("return.go") },
    inputs: [reason],
    context,
    check: () => (reason.input.value.trim() ? null : [reason, t("problem.required")]),
    onDone: () => context.onChanged("returned"),
  });
}
