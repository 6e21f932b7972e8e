// Which fields and documents are shown. The server decides by the same rules (contracts/fields/conditions.py).
//
// Conditions are an AND list; one with `operation: "or"` is OR-ed with the one before it: [A, B, C or] is A AND (B OR C).
// A hidden field has no value, also for the conditions of others. A field whose every place is on hidden documents is hidden.

/** The uuids of the fields and `documents` that are not there. `valueOf(uuid)` is the value that was filled in. Documents that
    are not among them cannot be shown at all. */
export function hiddenOf(fields, documents, valueOf) {
  const papers = new Map(documents.map((document) => [document.uuid, document]));
  const conditional = new Map();
  for (const one of [...documents, ...fields]) {
    const places = placesThatMayHide(one, papers);
    if (one.conditions?.length || places) conditional.set(one.uuid, { conditions: one.conditions, places });
  }
  const known = new Map();

  function isVisible(uuid) {
    if (!conditional.has(uuid)) return true;
    if (!known.has(uuid)) {
      known.set(uuid, true); // what is met again on the way round a circle counts as visible
      const { conditions, places } = conditional.get(uuid);
      const holds = satisfied(conditions, (other) => (isVisible(other) ? valueOf(other) : null));
      const hasPlace = !places || places.map(isVisible).some(Boolean);
      known.set(uuid, holds && hasPlace);
    }
    return known.get(uuid);
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

function holdsFor({ action, value: wanted }, value) {
  switch (action) {
    case "empty":
    case "unchecked":
      return isEmpty(value);
    case "not_empty":
    case "checked":
      return !isEmpty(value);
    case "equal":
      return equal(value, wanted);
    case "not_equal":
      return !equal(value, wanted);
    case "contains":
      return contains(value, wanted);
    case "does_not_contain":
      return !contains(value, wanted);
    case "greater_than":
      return compared(value, wanted) > 0;
    case "less_than":
      return compared(value, wanted) < 0;
    default:
      return true; // a field too many is seen, a field too few is not
  }
}

const word = (value) => (value === null || value === undefined ? "" : String(value));

function equal(value, wanted) {
  return Array.isArray(value) ? value.map(word).includes(word(wanted)) : word(value) === word(wanted);
}

function contains(value, wanted) {
  if (Array.isArray(value)) return equal(value, wanted);
  return word(wanted) !== "" && word(value).toLowerCase().includes(word(wanted).toLowerCase());
}

/** Below, above or at zero; zero also when the two cannot be compared. Dates are ISO texts and compare as such. */
function compared(value, wanted) {
  if (isEmpty(value) || Array.isArray(value) || typeof value === "boolean") return 0;
  const [left, right] = [number(value), number(wanted)];
  if (left !== null && right !== null) return left - right;
  return word(value) < word(wanted) ? -1 : Number(word(value) > word(wanted));
}

function number(value) {
  const text = word(value).trim();
  return text === "" || Number.isNaN(Number(text)) ? null : Number(text);
}
