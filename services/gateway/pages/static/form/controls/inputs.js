// Fields that one types into.
import { confirmedPhone } from "./confirmed_phone.js";
import { el } from "../dom.js";
import { hasTime, isCurrency, plainNumber, readableDate } from "../values/format.js";
import { locale, t } from "../texts.js";
import { dateBound, numberBound } from "../values/validation.js";

const LINE_HEIGHT = 1.5;

export function text(field, context) {
  return hasRoomForLines(field, context.state.form)
    ? typed(el("textarea", { rows: 4, autocapitalize: "sentences", dir: "auto", autocomplete: field.autocomplete }), context)
    : typed(el("input", { type: "text", dir: "auto", autocomplete: field.autocomplete }), context);
}

export function cells(field, context) {
  const room = roomForCharacters(field);
  const control = typed(el("input", { type: "text", maxlength: room, autocomplete: "off", spellcheck: "false" }), context);
  return { ...control, hint: room ? t("cells.hint", { count: room }) : "" };
}

export function phone(field, context) {
  const input = el("input", { type: "tel", autocomplete: "tel" });
  const control = typed(input, context);
  const plain = { ...control, hint: t("phone.hint") };
  return field.preferences?.one_time_code ? confirmedPhone(field, context, input, plain) : plain;
}

/** A text input: a number input changes its value when the wheel turns, and hides what it does not understand. */
export function number(field, context) {
  const rules = field.validation ?? {};
  const [low, high, step] = [rules.min, rules.max, rules.step].map(numberBound);
  const mode = low !== null && low < 0 ? "text" : step === 1 ? "numeric" : "decimal";
  const plain = typeof context.value === "number" ? plainNumber(context.value) : context.value;
  const input = el("input", { type: "text", inputmode: mode, autocomplete: "off" });
  const control = typed(input, { ...context, value: plain, onInput: (raw) => context.onInput(readNumber(raw, context.state.locale)) });
  return { ...control, hint: [unit(field), bounds(low, high)].filter(Boolean).join(" ") };
}

export function date(field, context) {
  if (hasTime(field.preferences?.format)) return moment(field, context);
  const rules = field.validation ?? {};
  const [low, high] = [dateBound(rules.min), dateBound(rules.max)];
  const input = el("input", { type: "date", min: low, max: high ?? "9999-12-31", autocomplete: field.autocomplete });
  const control = typed(input, context);
  const today = el("button", { type: "button", class: "button button--small" }, t("date.today"));
  today.addEventListener("click", () => {
    input.value = localToday();
    context.onInput(input.value);
    input.focus();
  });
  const allowed = (!low || localToday() >= low) && (!high || localToday() <= high);
  return {
    ...control,
    node: el("div", { class: "beside" }, input, allowed ? today : null),
    hint: dateBounds(low, high),
  };
}

/** A day with a time of day: entered in the reader's own zone, kept in UTC. */
function moment(field, context) {
  const rules = field.validation ?? {};
  const [low, high] = [dateBound(rules.min), dateBound(rules.max)];
  const input = el("input", { type: "datetime-local", min: low && `${low}T00:00`, max: `${high ?? "9999-12-31"}T23:59` });
  const keep = (local) => context.onInput(local ? utc(new Date(local)) : "");
  const control = typed(input, { ...context, value: localMoment(context.value), onInput: keep });
  const now = el("button", { type: "button", class: "button button--small" }, t("date.now"));
  now.addEventListener("click", () => {
    input.value = localMoment(utc(new Date()));
    keep(input.value);
    input.focus();
  });
  return { ...control, node: el("div", { class: "beside" }, input, now), hint: dateBounds(low, high) };
}

const utc = (moment) => (Number.isNaN(moment.getTime()) ? "" : moment.toISOString().replace(/\.\d+Z$/, "Z"));

/** As an input of the reader's own zone has it: `YYYY-MM-DDTHH:MM`. */
function localMoment(iso) {
  const moment = new Date(/T/.test(iso ?? "") ? iso : `${iso}T00:00`);
  if (!iso || Number.isNaN(moment.getTime())) return "";
  return new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** `1.250,50`, `1,250.50`, `1250,5` and `$ 1250.5` are all understood. One mark alone separates thousands when it does so in
    the reader's country and three digits follow, else decimals. What is no number comes back as it was typed. */
export function readNumber(raw, country) {
  let plain = raw.replace(/[\s\u00a0\u202f'$€£%]/g, "");
  if (plain === "") return null;
  const marks = plain.replace(/[^.,]/g, "");
  const last = Math.max(plain.lastIndexOf("."), plain.lastIndexOf(","));
  const alone = marks.length === 1 && marks === thousandsMark(country) && /^[+-]?[1-9]\d{0,2}[.,]\d{3}$/.test(plain);
  if (new Set(marks).size === 2) {
    plain = `${plain.slice(0, last).replace(/[.,]/g, "")}.${plain.slice(last + 1)}`;
  } else if (marks.length > 1 || alone) {
    plain = plain.replace(/[.,]/g, "");
  } else {
    plain = plain.replace(",", ".");
  }
  return /^[+-]?(\d+(\.\d*)?|\.\d+)$/.test(plain) ? Number(plain) : raw;
}

function thousandsMark(country) {
  try {
    return new Intl.NumberFormat(country).formatToParts(1_000_000).find(({ type }) => type === "group")?.value;
  } catch {
    return ",";
  }
}

function typed(input, { id, value, onInput, describedBy, required }) {
  input.id = id;
  input.className = "input";
  input.value = value ?? "";
  input.setAttribute("aria-describedby", describedBy);
  if (required) input.setAttribute("aria-required", "true");
  input.addEventListener("input", () => onInput(input.value));
  return { node: input, labels: input, focus: () => input.focus() };
}

/** An area that is higher than two lines of its text invites more than one. */
function hasRoomForLines(field, form) {
  return field.areas.some((area) => {
    const document = form.documents.find(({ uuid }) => uuid === area.attachment_uuid) ?? form.documents[0];
    const page = document?.pages[area.page - 1];
    if (!page) return false;
    const size = Number(field.preferences?.font_size) || (Math.min(page.width, page.height) / 595) * 11;
    return area.h * page.height > 2 * LINE_HEIGHT * size;
  });
}

function roomForCharacters(field) {
  const area = field.areas.find(({ cell_w }) => cell_w > 0);
  return area ? Math.max(1, Math.round(area.w / area.cell_w)) : null;
}

function unit(field) {
  const style = String(field.preferences?.format ?? "").toLowerCase();
  if (isCurrency(style)) return `${t("number.currency", { currency: style.toUpperCase() })}.`;
  return style.startsWith("percent") ? `${t("number.percent")}.` : "";
}

function bounds(low, high) {
  if (low !== null && high !== null) return t("number.between", { min: plainNumber(low), max: plainNumber(high) });
  if (low !== null) return t("number.from", { limit: plainNumber(low) });
  return high !== null ? t("number.to", { limit: plainNumber(high) }) : "";
}

function dateBounds(low, high) {
  const shown = (day) => readableDate(day, locale);
  if (low && high) return t("date.between", { min: shown(low), max: shown(high) });
  if (low) return t("date.from", { limit: shown(low) });
  return high ? t("date.to", { limit: shown(high) }) : "";
}

function localToday() {
  const now = new Date();
  const two = (part) => String(part).padStart(2, "0");
  return `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`;
}
