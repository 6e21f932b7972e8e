// Before the signer's turn: looks now and then whether it has come.
import "./language.js";
import { get, pause, Refused } from "./form/server/calls.js";

const WAIT = 20_000;

for (;;) {
  await pause(WAIT);
  if (document.visibilityState === "hidden") continue;
  try {
    if ((await get("results.json")).state !== "waiting") location.reload();
  } catch (error) {
    if (error instanceof Refused) location.reload();
  }
}
