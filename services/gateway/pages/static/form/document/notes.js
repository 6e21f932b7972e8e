// What has to be said of the text of a page beside the text.
import { count, t } from "../texts.js";

/** Sentences for `page`, none for most. */
export function notesOf(text, page) {
  const notes = (page.pictures ?? []).map((words) => t("reading.described", { words }));
  if (page.kind === "picture") notes.push(t("reading.picture"));
  if (page.kind === "blank") notes.push(t("reading.blank"));
  if (page.kind === "too_long") notes.push(t("reading.too_long"));
  if (page.hidden && page.kind === "text") notes.push(count("reading.hidden", page.hidden));
  if (text.footer) notes.push(text.footer);
  return notes;
}
