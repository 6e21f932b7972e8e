// The screen between two parties that sign on one device: who has it now says that they are the next one, or somebody else. Where
// they go takes this page's place, so that there is no way back to it.
import "../language.js";
import { newRequestId, persistently, post, Refused } from "../form/server/calls.js";
import { t } from "../form/texts.js";

const WAITS = [1_000, 2_000, 4_000];

const take = document.getElementById("take");
const refuse = document.getElementById("refuse");
const problem = document.getElementById("problem");

take?.addEventListener("click", () => ask("take", ({ url }) => location.replace(url)));
refuse?.addEventListener("click", () => ask("refuse", () => location.reload()));
for (const button of [take, refuse]) if (button) button.disabled = false; // until now nobody would have heard it

const requests = { take: newRequestId(), refuse: newRequestId() };

async function ask(call, onDone) {
  take.disabled = refuse.disabled = true;
  problem.textContent = "";
  try {
    onDone(await persistently(() => post(call, { request_id: requests[call] }), WAITS));
  } catch (error) {
    if (error instanceof Refused) return location.reload(); // the page says that it is over
    take.disabled = refuse.disabled = false;
    problem.textContent = t("decline.failed");
  }
}
