// Going on later: what was filled in is saved, and the link goes to the signer's own mailbox or phone.
import { t } from "../texts.js";
import { openWayDialog, sayInstead } from "./way_dialog.js";

export function openLater(context) {
  context.leaveStep();
  openWayDialog({
    call: "later",
    texts: { heading: t("later.button"), intro: t("later.intro"), go: t("later.go") },
    inputs: [],
    context,
    settle: true,
    onDone: (dialog, { to }) => {
      context.traffic.resume();
      sayInstead(dialog, t("later.button"), t("later.done", { address: to }));
    },
  });
}
