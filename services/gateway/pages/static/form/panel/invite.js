// Whom the signer names for later roles.
import { announce, el } from "../dom.js";
import { t } from "../texts.js";
import { isPhone } from "../values/validation.js";

/** An e-mail address, a telephone number where one is needed, and optionally a name, for each of `state.form.invites`. */
export function inviteFields(state) {
  return el(
    "section",
    { class: "invite" },
    el("h3", { class: "invite__heading" }, t("invite.heading")),
    el("p", { class: "soft" }, t("invite.intro")),
    state.form.invites.map((party) => person(state, party)),
  );
}

/** True when everybody has been named; else what is missing first is asked for. */
export function refuseWithoutInvited(state, place) {
  for (const { uuid, needs_phone } of state.form.invites) {
    const { email, phone } = state.invited.get(uuid);
    const id = `invite-${CSS.escape(uuid)}`;
    const address = place.querySelector(`#${id}`);
    if (!email || !address.validity.valid) return refuse(place, id, t(email ? "problem.invite" : "problem.required.invite"));
    if (needs_phone && !isPhone(phone)) return refuse(place, `${id}-phone`, t("problem.phone"));
  }
  return true;
}

function refuse(place, id, sentence) {
  const input = place.querySelector(`#${id}`);
  input.setAttribute("aria-invalid", "true");
  place.querySelector(`#${id}-problem`).textContent = sentence;
  announce(sentence);
  input.focus();
  input.closest(".invite__person").scrollIntoView({ block: "nearest" });
  return false;
}

function person(state, { uuid, role, needs_phone }) {
  const id = `invite-${uuid}`;
  const named = state.invited.get(uuid);
  return el(
    "div",
    { class: "invite__person" },
    labelledInput(named, "email", { id, type: "email", maxlength: 254 }, t("invite.email", { role })),
    needs_phone ? labelledInput(named, "phone", { id: `${id}-phone`, type: "tel", maxlength: 30 }, t("invite.phone", { role }), t("invite.phone_hint")) : null,
    labelledInput(named, "name", { id: `${id}-name`, type: "text", dir: "auto", maxlength: 200 }, t("invite.name", { role })),
  );
}

/** One input with its label, perhaps a hint, and room for what is wrong with it. */
function labelledInput(named, key, attributes, label, hint = null) {
  const { id } = attributes;
  const problem = el("p", { class: "problem", id: `${id}-problem`, role: "alert" });
  const input = el("input", {
    ...attributes,
    class: "input",
    value: named[key],
    autocomplete: "off",
    "aria-describedby": hint ? `${id}-problem ${id}-hint` : `${id}-problem`,
    on: {
      input: () => {
        named[key] = input.value.trim();
        input.removeAttribute("aria-invalid");
        problem.textContent = "";
      },
    },
  });
  return [el("label", { for: id }, label), input, hint ? el("p", { class: "soft", id: `${id}-hint` }, hint) : null, problem];
}
