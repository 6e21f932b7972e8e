// On the telephone: a pad, and nothing else. What is drawn goes to the form that is open on another device.
import "./language.js";
import { Pad } from "./form/controls/signature/pad.js";
import { announce, button, dataOf, el } from "./form/dom.js";
import { newRequestId, persistently, post, Refused, sendFile } from "./form/server/calls.js";
import { t } from "./form/texts.js";

const WAITS = [1_000, 3_000];

const place = document.getElementById("phone");
const problem = document.getElementById("problem");

begin(dataOf("phone-data"));

/** Programs that preview links open this page, too: the one that is connected is the one that somebody looks at. */
async function begin(found) {
  if (found.step === "waiting") {
    if (document.visibilityState !== "visible") {
      document.addEventListener("visibilitychange", () => begin(found), { once: true });
      return;
    }
    try {
      show(await persistently(() => post("connect", { request_id: newRequestId() }), WAITS));
    } catch (error) {
      say(error instanceof Refused ? t("phone.ended") : t("phone.unsent"));
    }
  } else show(found);
}

function show(found) {
  if (found.step === "over") say(t("phone.ended"));
  else if (!found.mine) say(t("phone.other"));
  else if (found.step === "delivered") say(t("phone.sent"));
  else draw(found);
}

function say(text) {
  place.replaceChildren(el("p", { tabindex: -1 }, text));
  announce(text);
}

function draw({ type, color, submitter_name: name, submission_name: document }) {
  const pad = new Pad({ color, describedBy: "what problem", onChange: () => offer() });
  pad.canvas.setAttribute("aria-label", t("phone.pad"));
  const undo = button(t("signature.undo"), () => pad.undo(), "button--small");
  const clear = button(t("signature.clear"), () => pad.clear(), "button--small");
  const send = button(t("phone.send"), () => deliver(), "button--main");
  const request = newRequestId();
  const what = name ? t("phone.what", { name, document }) : t("phone.what_unnamed", { document });
  place.replaceChildren(
    el("h1", { class: "card__title" }, t(type === "initials" ? "phone.title_initials" : "phone.title")),
    el("p", { id: "what" }, what),
    pad.node,
    el("div", { class: "signature__tools" }, undo, clear),
    el("p", {}, send),
  );
  offer();

  function offer() {
    problem.textContent = "";
    for (const each of [undo, clear, send]) each.disabled = pad.empty;
  }

  async function deliver() {
    const flaw = pad.flaw();
    if (flaw) {
      problem.textContent = t(`problem.${flaw}`);
      return;
    }
    send.disabled = true;
    announce(t("phone.sending"));
    try {
      const picture = await pad.picture();
      show(await persistently(() => sendFile(picture, `${type}.png`, type, request), WAITS));
    } catch (error) {
      if (error instanceof Refused && error.state === "other_device") say(t("phone.other"));
      else if (error instanceof Refused && (error.state || error.status === 404)) say(t("phone.ended"));
      else {
        problem.textContent = (error instanceof Refused && error.message) || t("phone.unsent");
        send.disabled = false;
      }
    }
  }
}
