// A shared link: visitors say who they are, pass a code where one is asked for, and get a form of their own.
import "./language.js";
import { codeForm } from "./code_form.js";
import { onWishes } from "./form/embedding.js";
import { newRequestId, post, Refused, Unreachable } from "./form/server/calls.js";
import { t } from "./form/texts.js";

const form = document.getElementById("link-form");
const problem = document.getElementById("link-problem");
const code = document.getElementById("code");
const request = newRequestId(); // one for this page: who presses twice gets one form
let busy = false;

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (code) document.getElementById("code-send").click();
  else start();
});
form.addEventListener("input", () => say(null, ""));

if (code) {
  codeForm(code, {
    send: "code/send",
    check: "code",
    body: said,
    mayAsk: complete,
    onPassed: (_say, { url }) => location.assign(url),
    onField: say,
  });
}

// A page around this one may know who they are. Whoever is known begins at once, as long as no code is asked for.
onWishes(({ prefill }) => {
  const fields = [...form.querySelectorAll("input")].filter(({ name, value }) => !value && typeof prefill?.[name] === "string");
  for (const input of fields) input.value = prefill[input.name].slice(0, input.maxLength);
  if (fields.length && !code && [...form.querySelectorAll("input")].every(({ value }) => value.trim())) start();
});

async function start() {
  if (busy || !complete()) return;
  busy = true;
  document.getElementById("link-go").disabled = true;
  try {
    const { url } = await post("start", { request_id: request, ...said() });
    location.assign(url);
  } catch (error) {
    if (!(error instanceof Refused) && !(error instanceof Unreachable)) throw error;
    explain(error);
  } finally {
    busy = false;
    document.getElementById("link-go").disabled = false;
  }
}

function explain(error) {
  const detail = error.details?.[0] ?? {};
  if (detail.field === "link") location.reload();
  else if (form.elements[detail.field]) say(form.elements[detail.field], t(PROBLEMS[detail.field]));
  else if (detail.retry_after) say(null, t("link.busy"));
  else say(null, error instanceof Refused ? error.message : t("code.unreachable"));
}

const PROBLEMS = { email: "link.wrong_email", name: "link.wrong_name", phone: "link.wrong_phone" };

function said() {
  return Object.fromEntries([...form.querySelectorAll("input")].map(({ name, value }) => [name, value.trim()]));
}

/** The server looks closer; what is certainly wrong need not be asked. */
function complete() {
  for (const input of form.querySelectorAll("input")) {
    const value = input.value.trim();
    const right = {
      email: /^[^@\s]+@[^@\s]+\.[^@\s]+$/.test(value),
      phone: /^\+[0-9 ().\-/]{5,}$/.test(value),
      name: value !== "",
    }[input.name];
    if (!right) {
      say(input, t(PROBLEMS[input.name]));
      return false;
    }
  }
  return true;
}

function say(input, text) {
  for (const element of form.querySelectorAll("input")) element.removeAttribute("aria-invalid");
  problem.textContent = text;
  if (!input) return;
  // Right below: what is further down lies behind a phone's keyboard.
  (form.querySelector(`#${input.id}-hint`) ?? input).after(problem);
  input.setAttribute("aria-invalid", "true");
  input.focus();
}
