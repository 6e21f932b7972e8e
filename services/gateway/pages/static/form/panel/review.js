// All answers at a glance, before they are signed.
import { isEmpty } from "../values/empty.js";
import { consentBox } from "./consent.js";
import { button, el } from "../dom.js";
import { isComputed } from "../form_state.js";
import { shownText } from "../values/format.js";
import { inviteFields } from "./invite.js";
import { confirmsNext } from "./start_screen.js";
import { count, t, tFor } from "../texts.js";

const PICTURES = new Set(["signature", "initials", "image"]);

export function review(state, { onChange, onBack, onComplete }) {
  const steps = state.steps();
  return el(
    "div",
    { class: "review" },
    el("h2", { class: "step__title", tabindex: -1 }, t("review.heading")),
    el("p", {}, [tFor(state.form, steps.length ? "review.intro" : "review.nothing"), confirmsNext(state.form)].filter(Boolean).join(" ")),
    el("dl", { class: "review__answers" }, steps.map((field) => answer(state, field, onChange)), computedOnes(state), filledDates(state)),
    state.payments().map(payment),
    state.form.invites.length ? inviteFields(state) : null,
    state.form.consent ? consentBox(state) : null,
    el("p", { class: "panel__message", role: "status" }),
    el(
      "div",
      { class: "buttons" },
      el("p", { class: "soft buttons__whole" }, state.form.statement),
      onBack && button(t("step.back"), onBack),
      button(tFor(state.form, "step.complete"), onComplete, "button--main"),
    ),
  );
}

function answer(state, field, onChange) {
  const proved = field.type === "verification" && !isEmpty(state.value(field.uuid)); // there is nothing to change in it
  const change = el("a", { href: "#", class: "review__change" }, t("review.change"), el("span", { class: "visually-hidden" }, ` ${field.label}`));
  change.addEventListener("click", (event) => {
    event.preventDefault();
    onChange(field);
  });
  return el("div", { class: "review__answer" }, el("dt", {}, field.label), el("dd", {}, given(state, field)), el("dd", { class: "review__act" }, proved ? null : change));
}

/** What was computed from the answers. */
function computedOnes(state) {
  return state.computedFields().map((field) =>
    el(
      "div",
      { class: "review__answer", "data-computed": field.uuid },
      el("dt", {}, field.label),
      el("dd", {}, given(state, field), el("p", { class: "soft" }, t("review.filled"))),
    ),
  );
}

/** Dates that are filled in without being asked for: signers see what they sign. */
function filledDates(state) {
  const dates = state.fields.filter((field) => field.mine && field.readonly && !isComputed(field) && field.type === "date" && !isEmpty(state.value(field.uuid)) && state.isShown(field));
  return dates.map((field) =>
    el("div", { class: "review__answer" }, el("dt", {}, field.label), el("dd", {}, field.display ?? given(state, field), el("p", { class: "soft" }, t("review.filled")))),
  );
}

/** An amount to be paid, and where: signers pay it themselves. */
function payment(field) {
  const url = field.preferences?.payment_url;
  const host = url && new URL(url).host;
  const link = host && el("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, t("payment.link", { host }));
  return el("p", { class: "review__payment" }, t("payment.due", { label: field.label, amount: field.display }), link ? " " : null, link);
}

function given(state, field) {
  const value = state.value(field.uuid);
  if (field.type === "checkbox") return value ? t("review.yes") : t("review.no");
  if (isEmpty(value)) return el("span", { class: "soft" }, t("review.empty"));
  if (PICTURES.has(field.type)) {
    const picture = el("img", { class: "review__picture", src: state.attachments.get(value)?.url ?? "", alt: field.label });
    const reason = state.reason(field);
    return reason ? [picture, el("p", { class: "soft" }, t("review.reason", { reason }))] : picture;
  }
  if (field.type === "file") return count("review.files", value.length);
  return shownText({ ...field, preferences: { ...field.preferences, mask: false } }, value, state.locale, state.form.time_zone);
}
