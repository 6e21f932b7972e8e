// The box that a signer has to tick before completing.
import { announce, el } from "../dom.js";
import { t } from "../texts.js";

/** `state.form.consent`: the sender's words, and where what they speak of can be read. */
export function consentBox(state) {
  const { text, terms } = state.form.consent;
  const problem = el("p", { class: "problem", id: "consent-problem", role: "alert" });
  const box = el("input", {
    type: "checkbox",
    id: "consent",
    class: "choice__input",
    checked: state.consent,
    "aria-describedby": "consent-problem",
    on: {
      change: () => {
        state.consent = box.checked;
        box.removeAttribute("aria-invalid");
        problem.textContent = "";
      },
    },
  });
  const words = el("div", { class: "consent__words" }, el("label", { for: "consent", class: "choice__label" }, text));
  if (terms) {
    const link = el("a", { href: terms.url, target: "_blank", rel: "noopener noreferrer nofollow" }, t("consent.read", { host: terms.host }));
    words.append(el("p", { class: "consent__link" }, link));
  }
  return el("div", { class: "consent" }, el("div", { class: "choice" }, box, words), problem);
}

/** True when the signer has ticked it, or need not. */
export function refuseWithoutConsent(state, place) {
  if (!state.form.consent || state.consent) return true;
  const box = place.querySelector("#consent");
  box.setAttribute("aria-invalid", "true");
  place.querySelector("#consent-problem").textContent = t("problem.required.consent");
  announce(t("problem.required.consent"));
  box.focus();
  box.closest(".consent").scrollIntoView({ block: "nearest" });
  return false;
}
