// What the signer has filled in, and what follows from it: which fields are shown, which are steps, what is missing.
import { decided } from "./values/conditions.js";
import { isEmpty } from "./values/empty.js";
import { references } from "./values/formulas.js";
import { reasonKey } from "./server/calls.js";
import { problemWith } from "./values/validation.js";
import { t } from "./texts.js";

const NOT_FILLED_IN = new Set(["heading", "strikethrough", "stamp", "payment", "dutystamp"]);

/** Tells `changed` (with the field's uuid in `detail`) whenever an answer changes. */
export class FormState extends EventTarget {
  constructor(form, drafts) {
    super();
    this.form = form;
    this.fields = form.fields;
    this.byUuid = new Map(form.fields.map((field) => [field.uuid, field]));
    this.attachments = new Map(form.attachments.map((attachment) => [attachment.uuid, attachment]));
    this.values = new Map(form.fields.map((field) => [field.uuid, startingValue(field)]));
    for (const field of form.fields) if (field.reasons?.length) this.values.set(reasonKey(field.uuid), field.reason);
    this.resumed = form.go_to_last && form.fields.some((field) => isStep(field) && !isEmpty(field.value));
    /** The consent box of this signer; sent with the last step only. */
    this.consent = false;
    /** Whom the signer names for later roles: `{ email, name, phone }` by the role's uuid. */
    this.invited = new Map(form.invites.map(({ uuid }) => [uuid, { email: "", name: "", phone: "" }]));
    this.drafts = drafts;
    /** How the signer has signed on this page, if they have: they are offered to go on so. `name` is what they have typed as theirs. */
    this.hand = { way: null, style: 1, name: "" };
    /** Fields, by uuid, that have got what was made for another: they are not asked for again. */
    this.adopted = new Set();
    /** What is being made and is no answer yet: by the field's uuid a function that gives an element that shows it. */
    this.sketches = new Map();
    /** Why an answer has no place on the document, by the field's uuid. */
    this.undrawable = new Map();
    for (const [uuid, value] of drafts.entries()) {
      const field = this.byUuid.get(uuid);
      // A field that the sender has made read-only since shows what the sender has put in.
      const usable = field ? isStep(field) && this.attachmentsKnown(uuid, value) : this.values.has(uuid);
      if (usable) this.values.set(uuid, value);
    }
    this.decide();
  }

  get locale() {
    return this.form.locale;
  }

  value(uuid) {
    return this.values.get(uuid) ?? null;
  }

  /** Takes an answer as it stands, right or wrong: the document shows it while it is typed. */
  set(uuid, value) {
    const answer = isEmpty(value) && value !== false ? null : value;
    if (JSON.stringify(answer) === JSON.stringify(this.value(uuid))) return;
    this.values.set(uuid, answer);
    this.undrawable.delete(uuid);
    this.drafts.keep(uuid, answer);
    this.decide();
    this.dispatchEvent(new CustomEvent("changed", { detail: uuid }));
  }

  /** What follows from the answers: what is there, what is computed, what must be filled in. */
  decide() {
    const { hidden, computed, requires } = decided(this.fields, this.form.documents, (uuid) => this.values.get(uuid));
    this.hidden = hidden;
    for (const [uuid, value] of computed) this.values.set(uuid, value);
    this.required = new Set(this.fields.filter(requires).map(({ uuid }) => uuid));
  }

  /** Whether a field must be filled in, as the answers are now. */
  isRequired({ uuid }) {
    return this.required.has(uuid);
  }

  /** The fields that are computed for this signer and are there; with `field` those that depend on it. */
  computedFields(field = null) {
    return this.fields.filter((other) => isComputed(other) && this.isShown(other) && (!field || this.#followsFrom(other, field.uuid)));
  }

  /** What is wrong with what was computed, as a sentence; null when nothing is. */
  computedProblem(field) {
    return isEmpty(this.value(field.uuid)) ? null : problemWith(field, this.value(field.uuid));
  }

  #followsFrom(field, uuid, seen = new Set()) {
    if (seen.has(field.uuid)) return false;
    seen.add(field.uuid);
    const named = references(field.expressions.formula);
    return named.includes(uuid) || named.map((one) => this.byUuid.get(one)).some((one) => one && isComputed(one) && this.#followsFrom(one, uuid, seen));
  }

  /** Whether an answer that the signer has given elsewhere is one of this page: a field's, or the reason beside it. */
  mayAdopt(key) {
    const field = this.byUuid.get(key);
    return field ? isStep(field) && field.type !== "verification" : this.values.has(key);
  }

  /** Takes an answer that the server has already. */
  adopt(key, value) {
    this.values.set(key, isEmpty(value) && value !== false ? null : value);
    this.undrawable.delete(key);
    this.resumed = true;
    this.decide();
    this.dispatchEvent(new CustomEvent("changed", { detail: key }));
  }

  /** The reason for signing that was chosen for `field`, null for none. */
  reason(field) {
    const reason = this.value(reasonKey(field.uuid));
    return field.reasons?.includes(reason) ? reason : null;
  }

  setReason(field, reason) {
    this.set(reasonKey(field.uuid), reason);
  }

  /** It is signed and asks why. */
  needsReason(field) {
    return Boolean(field.reasons?.length) && !isEmpty(this.value(field.uuid)) && !this.reason(field);
  }

  /** Shows what is being made for `fields` in their places, and nowhere else; null shows nothing. */
  sketch(fields, make) {
    const uuids = make ? fields.map(({ uuid }) => uuid) : [];
    const changed = new Set([...this.sketches.keys(), ...uuids]);
    this.sketches = new Map(uuids.map((uuid) => [uuid, make]));
    for (const uuid of changed) this.dispatchEvent(new CustomEvent("sketched", { detail: this.byUuid.get(uuid) }));
  }

  /** Whether a field, or a document, is there. */
  isShown({ uuid }) {
    return !this.hidden.has(uuid);
  }

  /** The fields that this signer goes through, in order. */
  steps() {
    return this.fields.filter((field) => isStep(field) && this.isShown(field));
  }

  /** The number of the page of a field among all that are shown; null when it has no place, or there is one page only. */
  pageOf(field) {
    const [area] = field.areas;
    const documents = this.form.documents.filter((document) => this.isShown(document));
    const pages = documents.reduce((total, document) => total + document.pages.length, 0);
    const index = documents.findIndex(({ uuid }) => uuid === (area?.attachment_uuid || this.form.documents[0].uuid));
    if (!area || index < 0 || pages < 2) return null;
    return documents.slice(0, index).reduce((total, document) => total + document.pages.length, area.page);
  }

  problem(field) {
    const wrong = problemWith({ ...field, required: this.isRequired(field) }, this.value(field.uuid)) ?? this.undrawable.get(field.uuid);
    return wrong ?? (this.needsReason(field) ? t("problem.required.reason") : null);
  }

  /** The server has tried to draw the answer to `field`; `problem` is why it cannot be, null when it can. */
  judge(field, problem) {
    if ((this.undrawable.get(field.uuid) ?? null) === problem) return;
    if (problem) this.undrawable.set(field.uuid, problem);
    else this.undrawable.delete(field.uuid);
    this.dispatchEvent(new CustomEvent("judged", { detail: field }));
  }

  /** The answers that the server may not have yet, by uuid. */
  unsaved() {
    const entries = this.drafts.entries().filter(([key]) => this.values.has(key));
    return Object.fromEntries(entries.map(([key]) => [key, this.value(key)]));
  }

  /** Something has to be done on the last page, which no field asks for. */
  get needsReview() {
    return Boolean(this.form.consent) || this.form.invites.length > 0 || this.payments().length > 0;
  }

  /** What this signer is asked to pay: nothing of it is done here. */
  payments() {
    return this.fields.filter((field) => field.mine && field.type === "payment" && field.display && this.isShown(field));
  }

  /** The fields that still need something, in order. */
  problems() {
    return this.steps().filter((field) => this.problem(field));
  }

  /** All answers by uuid, without those of hidden fields. */
  answers() {
    return Object.assign({}, ...this.steps().map((field) => this.answersTo(field)));
  }

  /** The answer to a field, by its uuid; with a signature goes its reason. */
  answersTo(field) {
    if (field.type === "verification") return {}; // the server knows what was proved
    const answers = { [field.uuid]: this.value(field.uuid) };
    if (field.reasons?.length) answers[reasonKey(field.uuid)] = this.reason(field);
    return answers;
  }

  addAttachment(attachment) {
    this.attachments.set(attachment.uuid, attachment);
    return attachment.uuid;
  }

  /** A signature (or initials) that was made for another field of the same kind. */
  madeBefore(field) {
    const other = this.fields.findLast(
      ({ uuid, type, mine }) => mine && type === field.type && uuid !== field.uuid && this.attachments.has(this.value(uuid)),
    );
    return other ? this.attachments.get(this.value(other.uuid)) : null;
  }

  /** The field that a server's `details` speak of: by uuid, else by name, alone or inside a path. */
  fieldNamed(path) {
    const last = String(path).replace(/^values[.[]/, "").replace(/\]$/, "");
    const steps = this.fields.filter(isStep);
    return this.byUuid.get(last) ?? steps.find(({ name }) => name === last) ?? steps.find(({ name }) => name && path.includes(name));
  }

  attachmentsKnown(uuid, value) {
    if (!["signature", "initials", "image", "file"].includes(this.byUuid.get(uuid).type)) return true;
    return [value ?? []].flat().every((attachment) => this.attachments.has(attachment));
  }
}

export function isStep(field) {
  return Boolean(field.mine) && !field.readonly && !isComputed(field) && !NOT_FILLED_IN.has(field.type);
}

/** Whether a formula gives this signer's field its value. */
export const isComputed = (field) => Boolean(field.expressions?.formula);

/** True when this party does something; a viewer may only look. */
export function mayComplete(state) {
  if (state.form.acts_as) return state.form.acts_as !== "viewer"; // unknown to a server of an older version
  return state.fields.some((field) => field.mine);
}

function startingValue(field) {
  if (!isEmpty(field.value) || field.value === false) return field.value;
  return field.type === "checkbox" && field.mine ? false : null;
}
