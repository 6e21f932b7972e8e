// Which fields are shown. The server decides by the same rules (services/submissions/conditions.py).
//
// Conditions are an AND list; one with `operation: "or"` is OR-ed with the one before it: [A, B, C or] is A AND (B OR C).
// A hidden field has no value, also for the conditions of others.

/** The uuids of the fields that are not there. `valueOf(uuid)` is the value that was filled in. */
export function hiddenFields(fields, valueOf) {
  const byUuid = new Map(fields.map((field) => [field.uuid, field]));
  const known = new Map();

  function isVisible(field) {
    if (!known.has(field.uuid)) {
      known.set(field.uuid, true); // what is met again on the way round a circle counts as visible
      known.set(field.uuid, satisfied(field.conditions, shownValue));
    }
    return known.get(field.uuid);
  }

  function shownValue(uuid) {
    const field = byUuid.get(uuid);
    return field?.conditions?.length && !isVisible(field) ? null : valueOf(uuid);
  }

  return new Set(fields.filter((field) => field.conditions?.length && !isVisible(field)).map((field) => field.uuid));
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
