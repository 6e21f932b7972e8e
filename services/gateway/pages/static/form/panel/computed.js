// What is computed while a question is answered: it is said when nothing more is typed for a moment, and interrupts nobody.
import { el } from "../dom.js";
import { isEmpty } from "../values/empty.js";
import { shownText } from "../values/format.js";
import { t } from "../texts.js";

const PAUSE = 600; // milliseconds without a change

/** `{ node, refresh() }` for what follows from the answer to `field`; an empty list where nothing does. */
export function computedAnswers(state, field) {
  const list = el("dl", { class: "computed" });
  const outputs = new Map();
  let timer = null;

  function say() {
    const fields = state.computedFields(field);
    for (const [uuid, { row }] of outputs) {
      if (fields.some((one) => one.uuid === uuid)) continue;
      row.remove();
      outputs.delete(uuid);
    }
    for (const one of fields) {
      if (!outputs.has(one.uuid)) outputs.set(one.uuid, rowOf(list, field, one));
      const { output, problem } = outputs.get(one.uuid);
      write(output, textOf(state, one));
      write(problem, state.computedProblem(one) ?? "");
    }
    list.hidden = !fields.length;
  }

  say();
  return {
    node: list,
    refresh: () => {
      clearTimeout(timer);
      timer = setTimeout(say, PAUSE);
    },
  };
}

/** An `output` is a live region that waits until nobody speaks. */
function rowOf(list, field, { uuid, label }) {
  const output = el("output", { for: `answer-${field.uuid}`, "aria-live": "polite", "data-computed": uuid });
  const problem = el("p", { class: "problem" });
  const row = el("div", { class: "computed__row" }, el("dt", {}, label), el("dd", {}, output, problem));
  list.append(row);
  return { row, output, problem };
}

function textOf(state, field) {
  const value = state.value(field.uuid);
  if (field.type === "checkbox") return t(value ? "review.yes" : "review.no");
  if (isEmpty(value)) return "–";
  return shownText({ ...field, preferences: { ...field.preferences, mask: false } }, value, state.locale, state.form.time_zone);
}

const write = (node, text) => {
  if (node.textContent !== text) node.textContent = text;
};
