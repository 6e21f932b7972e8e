// What stands in the place of a field, in words: a link to its question for whoever fills it in, else what it holds.
import { isEmpty } from "../values/empty.js";
import { el } from "../dom.js";
import { shownText } from "../values/format.js";
import { isComputed, isStep } from "../form_state.js";
import { t } from "../texts.js";

const SEEN = new Set(["signature", "initials", "image", "stamp", "file"]);

/** `place`: `{ field, area }`. A node that `tell` keeps true, null for what says nothing. */
export function fieldWords(place, state, onPick) {
  const { field } = place;
  if (field.type === "strikethrough" || field.type === "heading") return null;
  const isMine = isStep(field);
  const node = el(isMine ? "a" : "span", { class: isMine ? "field-words field-words--mine" : "field-words", "data-place": field.uuid });
  if (isMine) {
    node.href = "#panel";
    node.addEventListener("click", (event) => {
      event.preventDefault();
      onPick(field);
    });
  }
  tell(node, place, state);
  return node;
}

export function tell(node, { field, area }, state) {
  node.hidden = !state.isShown(field);
  const value = valueOf(field, area, state) ?? (isComputed(field) ? t("review.empty") : null);
  const key = value === null ? (isStep(field) ? "document.field_empty" : "document.field_of_other") : "document.field_filled";
  const words = t(key, { name: field.label, value: value ?? "" });
  if (node.textContent !== words) node.textContent = words;
}

function valueOf(field, area, state) {
  const value = state.value(field.uuid);
  if (isEmpty(value) && !field.display) return null;
  if (SEEN.has(field.type)) return t("document.field_made");
  if (field.type === "checkbox") return value ? t("document.field_ticked") : null;
  if (area.option !== null && area.option !== undefined) {
    return `${area.option}: ${t([value].flat().includes(area.option) ? "document.field_ticked" : "document.field_not_ticked")}`;
  }
  const isOwn = field.mine && isStep(field);
  return (isOwn ? null : field.display) ?? shownText(field, value, state.locale, state.form.time_zone);
}
