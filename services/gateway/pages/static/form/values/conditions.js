// Which fields and documents are shown. The server decides by the same rules (contracts/fields/conditions.py).
//
// Conditions are an AND list; one with `operation: "or"` is OR-ed with the one before it: [A, B, C or] is A AND (B OR C).
// A hidden field has no value, also for the conditions of others. A field whose every place is on hidden documents is hidden.

/** The uuids of the fields and `documents` that are not there. `valueOf(uuid)` is the value that was filled in. Documents that
    are not among them cannot be shown at all. */
export function hiddenOf(fields, documents, valueOf) {
  const papers = new Map(documents.map((document) => [document.uuid, document]));
  const conditional = new Map();
  for (const part of [...documents, ...fields]) {
    const places = placesThatMayHide(part, papers);
    if (part.conditions?.length || places) conditional.set(part.uuid, { conditions: part.conditions, places });
  }
  const visible = new Map();

  function isVisible(uuid) {
    if (!conditional.has(uuid)) return true;
    if (!visible.has(uuid)) {
      visible.set(uuid, true); // what is met again on the way round a circle counts as visible
      const { conditions, places } = conditional.get(uuid);
      const holds = satisfied(conditions, (other) => (isVisible(other) ? valueOf(other) : null));
      const hasPlace = !places || places.map(isVisible).some(Boolean);
      visible.set(uuid, holds && hasPlace);
    }
    return visible.get(uuid);
  }

  return new Set([...conditional.keys()].filter((uuid) => !isVisible(uuid)));
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

export function isEmpty(value) {
  return (
    value === null || value === undefined || value === "" || value === false || (Array.isArray(value) && !value.length)
  );
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
