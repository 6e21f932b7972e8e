// Moments in the reader's own time, with its zone.
import { localeFor } from "./form/reader.js";

const format = new Intl.DateTimeFormat(localeFor(document.documentElement.lang), { dateStyle: "long", timeStyle: "short" });
const zone = new Intl.DateTimeFormat("en", { timeZoneName: "short" });

for (const place of document.querySelectorAll("time")) {
  const moment = new Date(place.dateTime);
  const name = zone.formatToParts(moment).find(({ type }) => type === "timeZoneName").value;
  place.textContent = `${format.format(moment)} (${name})`;
}
