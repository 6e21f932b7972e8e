// A question to the sender, who answers by mail.
import { t } from "../texts.js";
import { labelledInput, openWayDialog, sayInstead } from "./way_dialog.js";

export function openQuestion(context) {
  const question = labelledInput("question", t("ask.question"), { tag: "textarea", dir: "auto", rows: 5, maxlength: 2_000 });
  openWayDialog({
    call: "ask",
    texts: { heading: t("ask.button"), intro: t("ask.intro"), go: t("ask.go") },
    inputs: [question],
    context,
    check: () => (question.input.value.trim() ? null : [question, t("problem.required")]),
    onDone: (dialog) => {
      context.traffic.resume();
      sayInstead(dialog, t("ask.button"), t("ask.done"));
    },
  });
}
