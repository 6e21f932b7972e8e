// One signature for all the places that want it: made once, and each place is named before it goes there.
import { el } from "../../dom.js";
import { isEmpty } from "../../values/empty.js";
import { count, locale } from "../../texts.js";

const WAYS = { drawn: ["draw"], typed: ["type"], drawn_or_typed: ["draw", "type"], upload: ["upload"] };
const ALL_WAYS = ["draw", "type", "upload"];
const NAMED = 8;

/** How the sender wants this field to be signed. */
export const waysOf = ({ preferences }) => WAYS[preferences?.format] ?? ALL_WAYS;

/** The other fields that take what is made for `field`, in whichever `way` (null when that is not known any more): those that are empty, and those that
    have got another one from elsewhere. What asks for a reason is asked for by itself. */
export function placesLike(field, state, way) {
  const ways = way ? [way] : waysOf(field);
  return state.steps().filter(
    (other) =>
      other !== field &&
      other.type === field.type &&
      !other.reasons?.length &&
      (isEmpty(state.value(other.uuid)) || (state.adopted.has(other.uuid) && state.value(other.uuid) !== state.value(field.uuid))) &&
      ways.every((each) => waysOf(other).includes(each)),
  );
}

/** The words "Use it for all 4 places" and the names of the places. */
export function wordsFor(field, places) {
  return count("signature.for_all", places.length + 1);
}

export function namesOf(field, places, state) {
  const all = state.steps().filter((step) => step === field || places.includes(step));
  const names = all.slice(0, NAMED).map(({ label }) => label);
  if (all.length > NAMED) names.push("…");
  return new Intl.ListFormat(locale, { type: "conjunction" }).format(names);
}

/** A box to tick before it is made. */
export function forAllBox(id, field, places, state, isChosen, onChange) {
  const box = el("input", {
    type: "checkbox",
    class: "choice__input",
    id: `${id}-for-all`,
    checked: isChosen,
    "aria-describedby": `${id}-places`,
    on: { change: () => onChange(box.checked) },
  });
  return el(
    "div",
    { class: "for-all" },
    el("div", { class: "choice" }, box, el("label", { for: box.id, class: "choice__label" }, wordsFor(field, places))),
    el("p", { class: "hint for-all__places", id: `${id}-places` }, namesOf(field, places, state)),
  );
}
