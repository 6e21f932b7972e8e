// Moments in the reader's own time, with its zone.
for (const place of document.querySelectorAll("time")) {
  const format = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: "long", timeStyle: "long" });
  place.textContent = format.format(new Date(place.dateTime));
}
