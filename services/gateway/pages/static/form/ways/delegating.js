// Handing the form over to somebody else, who gets a link of their own.
import { t } from "../texts.js";
import { isPhone } from "../values/validation.js";
import { labelledInput, openWayDialog } from "./way_dialog.js";

export function openDelegation(context) {
  const { role, delegate_needs_phone: needsPhone } = context.form;
  const email = labelledInput("email", t("invite.email", { role }), { type: "email", maxlength: 254 });
  const phone = needsPhone && labelledInput("phone", t("invite.phone", { role }), { type: "tel", maxlength: 30 }, t("invite.phone_hint"));
  const name = labelledInput("name", t("invite.name", { role }), { type: "text", dir: "auto", maxlength: 200 });
  const reason = labelledInput("reason", t("delegate.reason"), { tag: "textarea", dir: "auto", rows: 3, maxlength: 5_000 });
  openWayDialog({
    call: "delegate",
    texts: { heading: t("delegate.button"), intro: t("delegate.intro"), go: t("delegate.go") },
    inputs: [email, phone, name, reason].filter(Boolean),
    danger: true,
    context,
    check() {
      if (!email.input.value.trim() || !email.input.validity.valid) return [email, t("problem.invite")];
      return phone && !isPhone(phone.input.value.trim()) ? [phone, t("problem.phone")] : null;
    },
    onDone: () => context.onChanged("delegated"),
  });
}
