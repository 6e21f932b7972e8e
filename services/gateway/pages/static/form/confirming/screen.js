// What the signer sees while they confirm at the provider: what is signed, what to do now, how long it may take.
import { el, button } from "../dom.js";
import { count, t } from "../texts.js";

const WORKING = new Set(["preparing", "signing", "waiting"]);
const OVER = new Set(["refused", "failed"]);
const ASKED_ANEW = new Set(["no_answer", "expired"]); // why the same is asked once more; what else went wrong is tried again unseen

/** The sentence that says what is going on, and is read aloud when it changes. */
export function statusOf(view) {
  const { step, provider, problem } = view;
  if (OVER.has(step)) return problemOf(view) || t("confirm.problem.refused", { provider });
  if (problem === "unavailable") return problemOf(view);
  const lines = { preparing: "confirm.preparing", redirect: "confirm.go_intro", question: "confirm.question", waiting: "confirm.waiting", signing: "confirm.signing" };
  const happening = step === "signing" && view.signed ? t("confirm.signed", { signed: view.signed, count: view.documents }) : "";
  return [ASKED_ANEW.has(problem) ? problemOf(view) : "", t(lines[step], { provider }), happening].filter(Boolean).join(" ");
}

/**
 * The screen of `view`. `documents`: names of what is signed. `framed`: the page is in a frame of another one, where no provider
 * lets itself be shown; `here` is the address of this page for a window of its own. `act`: `go()`, `answer(answers)`, `again()`, `leave()`.
 */
export function screenOf(view, { documents, framed, here, act }) {
  const { step, provider, holder } = view;
  const problem = el("p", { class: "problem confirm__problem", role: "alert" }, OVER.has(step) ? statusOf(view) : "");
  const status = OVER.has(step) ? null : el("p", { class: "confirm__status" }, statusOf(view));
  const question = step === "question" ? questionForm(view, act, problem) : null;
  const node = el(
    "div",
    { class: "confirm" },
    el("h2", { class: "step__title", tabindex: -1 }, t("confirm.heading", { provider })),
    status,
    question,
    question ? null : problem,
    WORKING.has(step) ? el("div", { class: "working", "aria-hidden": true }) : null,
    el("p", { class: "soft confirm__left" }),
    el("p", { class: "confirm__what" }, holder ? t("confirm.holder_signs", { holder, provider }) : t("confirm.signs", { provider })),
    el("ul", { class: "confirm__documents" }, documents.map((name) => el("li", {}, name))),
    mayGoBack(view) ? el("p", { class: "soft" }, t("confirm.back_note")) : null,
    el(
      "div",
      { class: "buttons" },
      mayGoBack(view) ? button(t("confirm.back"), () => act.leave()) : null,
      step === "redirect" ? way(view, framed, here, act) : null,
      question ? el("button", { type: "submit", form: "confirm-answers", class: "button button--main" }, t("confirm.answer")) : null,
      OVER.has(step) ? button(t("confirm.again"), () => act.again(), "button--main") : null,
    ),
  );
  return { node, problem, first: () => node.querySelector("input, .confirm__go") ?? node.querySelector("h2") };
}

/** The time that is left, in words; "" where there is no end to it. */
export function leftOf(view, now = Date.now()) {
  if (view.until === null || view.until === undefined) return "";
  const seconds = Math.max(0, Math.ceil((view.until - now) / 1000));
  return seconds > 90 ? count("confirm.left_minutes", Math.round(seconds / 60)) : count("confirm.left_seconds", seconds);
}

function problemOf({ problem, provider }) {
  return problem ? t(`confirm.problem.${problem}`, { provider }) : "";
}

/** Once it is permitted there is no way back, unless the provider is away. */
function mayGoBack({ step, problem }) {
  return step !== "signing" || Boolean(problem);
}

function way({ provider }, framed, here, act) {
  if (!framed) return button(t("confirm.go", { provider }), () => act.go(), "button--main confirm__go");
  return el("a", { class: "button button--main confirm__go", href: here, target: "_blank", rel: "noopener" }, t("confirm.own_window"));
}

function questionForm(view, act, problem) {
  const inputs = view.questions.map((question, index) => {
    const input = el("input", {
      class: "input input--code",
      id: `confirm-answer-${index}`,
      name: question.id,
      type: question.hidden ? "password" : "text",
      inputmode: question.numeric ? "numeric" : null,
      autocomplete: question.hidden ? "off" : "one-time-code",
      autocapitalize: "off",
      spellcheck: "false",
      maxlength: 200,
      dir: "ltr",
      "aria-describedby": "confirm-problem",
    });
    input.addEventListener("input", () => {
      input.removeAttribute("aria-invalid");
      problem.textContent = "";
    });
    return input;
  });
  problem.id = "confirm-problem";
  const another = button(t("code.again"), () => act.again(), "button--quiet confirm__another");
  const form = el(
    "form",
    { id: "confirm-answers", novalidate: true },
    inputs.flatMap((input, index) => [el("label", { class: "confirm__label", for: input.id }, view.questions[index].label), input]),
    problem,
    el("div", { class: "confirm__again" }, another, el("p", { class: "soft confirm__wait", "aria-live": "off" })),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const empty = inputs.find((input) => !input.value.trim());
    if (empty) {
      empty.setAttribute("aria-invalid", "true");
      problem.textContent = t("problem.required");
      empty.focus();
      return;
    }
    act.answer(Object.fromEntries(inputs.map((input) => [input.name, input.value.trim()])));
  });
  return form;
}
