// The language of the page: chosen, it is kept, and the page comes again in it. What was typed is kept by the form.
const choice = document.getElementById("language");

choice.addEventListener("change", () => choice.form.submit());
// Who comes back by the browser's arrow sees which language the page is in.
addEventListener("pageshow", () => choice.form.reset());
