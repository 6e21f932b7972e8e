// Fields that one chooses in.
import { button, el } from "../dom.js";
import { t } from "../texts.js";

export function checkbox(field, context) {
  const input = choiceInput("checkbox", context.value === true);
  input.id = context.id;
  input.setAttribute("aria-describedby", context.describedBy);
  input.addEventListener("change", () => context.onInput(input.checked));
  const node = el("div", { class: "choice choice--single" }, input);
  return { node, labels: input, focus: () => input.focus(), takeTitle: (title) => node.append(title) };
}

export function radio(field, context) {
  const inputs = optionsOf(field).map((option) => ({ option, input: choiceInput("radio", context.value === option, context.id) }));
  const group = el("div", { role: "radiogroup", class: "choices", "aria-describedby": context.describedBy });
  if (context.required) group.setAttribute("aria-required", "true");
  for (const [index, { option, input }] of inputs.entries()) {
    input.addEventListener("change", () => context.onInput(option));
    group.append(row(input, option, index, context));
  }
  const none = button(t("radio.clear"), () => {
    for (const { input } of inputs) input.checked = false;
    context.onInput(null);
  }, "button--small");
  const focus = () => (inputs.find(({ input }) => input.checked) ?? inputs[0])?.input.focus();
  return { node: el("div", {}, group, context.required ? null : none), labels: group, focus };
}

export function multiple(field, context) {
  const chosen = new Set(context.value ?? []);
  const group = el("div", { role: "group", class: "choices", "aria-describedby": context.describedBy });
  const options = optionsOf(field);
  const inputs = options.map((option, index) => {
    const input = choiceInput("checkbox", chosen.has(option));
    input.addEventListener("change", () => {
      if (input.checked) chosen.add(option);
      else chosen.delete(option);
      context.onInput(options.filter((option) => chosen.has(option)));
    });
    group.append(row(input, option, index, context));
    return input;
  });
  return { node: group, labels: group, focus: () => inputs[0]?.focus() };
}

export function select(field, context) {
  const input = el("select", { id: context.id, class: "input", "aria-describedby": context.describedBy });
  if (context.required) input.setAttribute("aria-required", "true");
  input.append(el("option", { value: "" }, t("select.choose")));
  for (const [index, option] of optionsOf(field).entries()) {
    input.append(el("option", { value: option, selected: context.value === option }, optionName(option, index)));
  }
  input.addEventListener("change", () => context.onInput(input.value));
  return { node: input, labels: input, focus: () => input.focus() };
}

/** The options; those of a group of marks on the page when the field has no list. */
function optionsOf(field) {
  if (field.options?.length) return field.options;
  return [...new Set(field.areas.map(({ option }) => option).filter((option) => option !== null && option !== undefined))];
}

const optionName = (option, index) => (option.trim() ? option : t("option.unnamed", { number: index + 1 }));

function choiceInput(type, checked, name = null) {
  return el("input", { type, name, checked, class: "choice__input" });
}

function row(input, option, index, context) {
  input.id = `${context.id}-${index}`;
  return el("div", { class: "choice" }, input, el("label", { for: input.id, class: "choice__label" }, optionName(option, index)));
}
