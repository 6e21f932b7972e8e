// Moments in the reader's own time, with its zone.
import "./language.js";
import { localeFor, MOMENT } from "./form/reader.js";

const format = new Intl.DateTimeFormat(localeFor(document.documentElement.lang), MOMENT);

for (const place of document.querySelectorAll("time")) place.textContent = format.format(new Date(place.dateTime));
