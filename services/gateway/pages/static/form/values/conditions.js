// Which fields and documents are shown. The server decides by the same rules (contracts/fields/conditions.py).
//
// Conditions are an AND list; one with `operation: "or"` is OR-ed with the one before it: [A, B, C or] is A AND (B OR C).
// A hidden field has no value, also for the conditions of others. A field whose every place is on hidden documents is hidden. A
// field may have a condition that is an expression, too, and a formula that computes its value.
import { isEmpty } from "./empty.js";
import { computed, holds, references } from "./formulas.js";

/** Which fields and `documents` are there: `{ hidden, computed, requires(field) }`, the uuids of those that are not, what formulas
    compute, by uuid (null for no value), and whether a field must be filled in. `valueOf(uuid)` is the value that was filled in.
    Documents that are not among them cannot be shown at all. */
export function decided(fields, documents, valueOf) {
  const papers = new Map(documents.map((document) => [document.uuid, document]));
  const byUuid = new Map(fields.map((field) => [field.uuid, field]));
  const parts = new Map();
  for (const part of [...documents, ...fields]) {
    const places = placesThatMayHide(part, papers);
    const { condition, formula } = part.expressions ?? {};
    if (part.conditions?.length || places || condition || formula) {
      parts.set(part.uuid, { part, conditions: part.conditions, places, condition, formula });
    }
  }
  const visible = new Map();
  const computedValues = new Map();
  const fieldOf = (uuid) => byUuid.get(uuid);

  function isVisible(uuid) {
    if (!parts.has(uuid)) return true;
    if (!visible.has(uuid)) {
      visible.set(uuid, true); // what is met again on the way round a circle counts as visible
      const { part, conditions, places, condition, formula } = parts.get(uuid);
      if (formula) computedValues.set(uuid, null);
      const holdsAll = satisfied(conditions, known);
      const hasPlace = !places || places.map(isVisible).some(Boolean);
      for (const tree of [condition, formula]) if (tree) references(tree).forEach(isVisible);
      visible.set(uuid, holdsAll && hasPlace && (!condition || holds(condition, known, fieldOf)));
      if (formula && visible.get(uuid)) computedValues.set(uuid, computed(part, formula, known, fieldOf));
    }
    return visible.get(uuid);
  }

  function known(uuid) {
    if (!isVisible(uuid)) return null;
    return computedValues.has(uuid) ? computedValues.get(uuid) : valueOf(uuid);
  }

  return {
    hidden: new Set([...parts.keys()].filter((uuid) => !isVisible(uuid))),
    computed: computedValues,
    requires: (field) => (field.expressions?.required_if ? holds(field.expressions.required_if, known, fieldOf) : Boolean(field.required)),
  };
}

/** The documents on which a field is, if all of them may be hidden; null when it is there whatever becomes of documents. */
function placesThatMayHide({ areas = [] }, papers) {
  const places = [...new Set(areas.map((area) => area.attachment_uuid))];
  const isCertain = (uuid) => !uuid || (papers.has(uuid) && !papers.get(uuid).conditions?.length);
  return places.length && !places.some(isCertain) ? places.filter((uuid) => papers.has(uuid)) : null;
}

export function satisfied(conditions, valueOf) {
  const groups = [];
  for (const condition of conditions ?? []) {
    const holds = holdsFor(condition, valueOf(condition.field_uuid));
    if (condition.operation === "or" && groups.length) groups[groups.length - 1] ||= holds;
    else groups.push(holds);
  }
  return groups.every(Boolean);
}

function holdsFor({ action, value: expected }, value) {
  switch (action) {
    case "empty":
    case "unchecked":
      return isEmpty(value);
    case "not_empty":
    case "checked":
      return !isEmpty(value);
    case "equal":
      return equal(value, expected);
    case "not_equal":
      return !equal(value, expected);
    case "contains":
      return contains(value, expected);
    case "does_not_contain":
      return !contains(value, expected);
    case "greater_than":
      return compared(value, expected) > 0;
    case "less_than":
      return compared(value, expected) < 0;
    default:
      return true; // a field too many is seen, a field too few is not
  }
}

const word = (value) => (value === null || value === undefined ? "" : String(value));

function equal(value, expected) {
  return Array.isArray(value) ? value.map(word).includes(word(expected)) : word(value) === word(expected);
}

function contains(value, expected) {
  if (Array.isArray(value)) return equal(value, expected);
  return word(expected) !== "" && word(value).toLowerCase().includes(word(expected).toLowerCase());
}

/** Below, above or at zero; zero also when the two cannot be compared. Dates are ISO texts and compare as such. */
function compared(value, expected) {
  if (isEmpty(value) || Array.isArray(value) || typeof value === "boolean") return 0;
  const [left, right] = [number(value), number(expected)];
  if (left !== null && right !== null) return left - right;
  return word(value) < word(expected) ? -1 : Number(word(value) > word(expected));
}

function number(value) {
  const text = word(value).trim();
  return text === "" || Number.isNaN(Number(text)) ? null : Number(text);
}
