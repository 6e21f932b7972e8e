// Whom the signer names for the roles that come after him.
import { announce, el } from "./dom.js";
import { t } from "./texts.js";

/** An e-mail address, and a name if he likes, for each of `state.form.invites`. */
export function inviteFields(state) {
  return el(
    "section",
    { class: "invite" },
    el("h3", { class: "invite__heading" }, t("invite.heading")),
    el("p", { class: "soft" }, t("invite.intro")),
    state.form.invites.map((party) => person(state, party)),
  );
}

/** True when everybody has been named; else the first one who has not is asked for. */
export function refuseWithoutInvited(state, place) {
  for (const { uuid } of state.form.invites) {
    const input = place.querySelector(`#invite-${CSS.escape(uuid)}`);
    if (state.invited.get(uuid).email && input.validity.valid) continue;
    const sentence = t(state.invited.get(uuid).email ? "problem.invite" : "problem.required.invite");
    input.setAttribute("aria-invalid", "true");
    place.querySelector(`#invite-${CSS.escape(uuid)}-problem`).textContent = sentence;
    announce(sentence);
    input.focus();
    input.closest(".invite__person").scrollIntoView({ block: "nearest" });
    return false;
  }
  return true;
}

function person(state, { uuid, role }) {
  const id = `invite-${uuid}`;
  const named = state.invited.get(uuid);
  const problem = el("p", { class: "problem", id: `${id}-problem`, role: "alert" });
  const email = el("input", {
    type: "email",
    id,
    class: "input",
    value: named.email,
    maxlength: 254,
    autocomplete: "off",
    "aria-describedby": `${id}-problem`,
    on: {
      input: () => {
        named.email = email.value.trim();
        email.removeAttribute("aria-invalid");
        problem.textContent = "";
      },
    },
  });
  const name = el("input", {
    type: "text",
    id: `${id}-name`,
    class: "input",
    value: named.name,
    maxlength: 200,
    autocomplete: "off",
    on: { input: () => (named.name = name.value.trim()) },
  });
  return el(
    "div",
    { class: "invite__person" },
    el("label", { for: id }, t("invite.email", { role })),
    email,
    problem,
    el("label", { for: `${id}-name` }, t("invite.name", { role })),
    name,
  );
}
