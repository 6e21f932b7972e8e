// Which control asks for which type of field.
//
// A control is `{ node, labels, focus() }`. `labels` is the element that the field's label belongs to: an input gets a
// <label for>, a group is named by `aria-labelledby`. Some have `hint`, a sentence; `takeTitle(title)`, when the title
// belongs beside them; `commit()`, which finishes what takes the network and throws Incomplete when it cannot.
import { checkbox, multiple, radio, select } from "./choices.js";
import { file, image } from "./files.js";
import { cells, date, number, phone, text } from "./inputs.js";
import { signature } from "./signature/signature.js";
import { verification } from "./verification.js";

export const CONTROLS = {
  text,
  cells,
  phone,
  number,
  date,
  checkbox,
  radio,
  select,
  multiple,
  image,
  file,
  signature,
  initials: signature,
  verification,
};
