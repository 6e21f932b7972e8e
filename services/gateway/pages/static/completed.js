// After signing: waits until the sealed documents are there, then offers them.
import "./form/embedding.js";
import "./handing/hand_on.js";
import "./language.js";
import { get, pause, Refused } from "./form/server/calls.js";
import { el } from "./form/dom.js";
import { t } from "./form/texts.js";

const FIRST_WAIT = 800;
const LONGEST_WAIT = 8_000;
const WHILE_OTHERS_SIGN = 20_000;

const result = document.getElementById("result");
const downloads = document.getElementById("downloads");

if (!downloads.children.length) watch();

async function watch() {
  let wait = FIRST_WAIT;
  for (;;) {
    await pause(wait);
    wait = Math.min(wait * 1.5, LONGEST_WAIT);
    let form;
    try {
      form = await get("results.json");
    } catch (error) {
      if (error instanceof Refused) return location.reload();
      tell("done.unreachable", true);
      continue;
    }
    if (form.state !== "completed") return location.reload();
    if (form.sealing_status === "sealed" && form.results.length) return offer(form);
    const sealing = form.sealing_status === "sealing";
    if (sealing && !form.waits_for_provider) tell("done.sealing", true);
    else if (sealing) tell("done.provider", false);
    else tell(form.sealing_status === "failed" ? "done.failed" : result.dataset.others, false);
    if (!sealing) wait = Math.max(wait, WHILE_OTHERS_SIGN);
  }
}

function tell(key, working) {
  if (result.dataset.key === key) return;
  result.dataset.key = key;
  result.classList.toggle("working", working);
  result.replaceChildren(el("p", {}, t(key)));
}

function offer(form) {
  tell("done.sealed", false);
  document.getElementById("copies")?.remove(); // the finished ones take their place
  for (const { name, url, sha256 } of form.results) {
    const link = el("a", { class: "button button--main", href: url, download: true }, t("done.download", { name }));
    const hash = sha256 && el("details", { class: "hash" }, el("summary", {}, t("done.hash")), el("code", {}, sha256));
    downloads.append(el("li", {}, link, hash));
  }
  if (!form.audit_log_url) return;
  const audit = el("a", { class: "button", href: form.audit_log_url, download: true }, t("done.audit"));
  downloads.append(el("li", {}, audit, el("p", { class: "soft" }, t("done.audit_note"))));
}
