// Before the document: asks for the code that was sent to the signer.
import "./form/embedding.js";
import "./language.js";
import "./state.js";
import { get } from "./form/server/calls.js";
import { openRefusalDialog } from "./form/panel/refusal_dialog.js";
import { codeForm } from "./code_form.js";
import { t } from "./form/texts.js";

const place = document.getElementById("code");
const notMe = document.getElementById("not-me");
const NOTHING_TO_SAVE = { stop() {}, resume() {} };

notMe?.addEventListener("click", () => openRefusalDialog("wrong_recipient", notMe, NOTHING_TO_SAVE, () => location.reload()));

if (place) {
  codeForm(place, {
    send: "code/send",
    check: "code",
    body: () => ({}),
    wasDelivered: async () => !(await get("results.json")).code?.failed,
    onPassed: async (say) => {
      const { code } = await get("results.json");
      // The proof is in a cookie. A browser that keeps none would be asked again and again.
      if (code && code.method === place.dataset.method) say(t("code.cookies"));
      else location.reload();
    },
  });
}
