// Who has completed hands the device to the next party. The screen between takes the place of their page, which has their data.
import { persistently, post, Refused } from "../form/server/calls.js";
import { t } from "../form/texts.js";

const WAITS = [1_000, 2_000, 4_000];

const hand = document.getElementById("hand");
const problem = document.getElementById("hand-problem");

hand?.addEventListener("click", async () => {
  hand.disabled = true;
  problem.textContent = "";
  try {
    const { url } = await persistently(() => post("hand", {}), WAITS);
    location.replace(url);
  } catch (error) {
    if (error instanceof Refused) return location.reload(); // it is somebody else's turn by now
    hand.disabled = false;
    problem.textContent = t("decline.failed");
  }
});

if (hand) hand.disabled = false; // until now nobody would have heard it

addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload(); // kept by the browser as it was, whoever looks at it now
});
