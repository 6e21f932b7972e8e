// Checking a document: a file may be dropped on the page, and a large one says that it is on its way. All else works without.
import "./language.js";
import "./times.js";

const form = document.getElementById("file-form");
const input = document.getElementById("file");
const drop = document.getElementById("drop");
const button = form.querySelector("button");
const label = button.textContent;

document.getElementById("drop-hint").hidden = false;

// A file that misses the box must not take the place of the page.
for (const kind of ["dragenter", "dragover"]) document.addEventListener(kind, over);
document.addEventListener("dragleave", (event) => !event.relatedTarget && mark(false));
document.addEventListener("drop", (event) => {
  event.preventDefault();
  mark(false);
  if (event.dataTransfer.files.length === 0) return;
  const transfer = new DataTransfer();
  transfer.items.add(event.dataTransfer.files[0]);
  input.files = transfer.files;
  form.requestSubmit();
});

form.addEventListener("submit", () => {
  button.disabled = true;
  button.textContent = button.dataset.busy;
  form.setAttribute("aria-busy", "true");
});
// Who comes back by the browser's arrow may check again.
addEventListener("pageshow", () => {
  button.disabled = false;
  button.textContent = label;
  form.removeAttribute("aria-busy");
});

function over(event) {
  event.preventDefault();
  mark(true);
}

function mark(on) {
  drop.classList.toggle("verify__drop--over", on);
}
