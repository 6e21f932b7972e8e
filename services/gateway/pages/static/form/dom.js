// Builds elements. What comes from outside goes in as text, so nothing that a sender wrote can act as HTML.

/** `el("button", { type: "button", on: { click } }, "Next")`: attributes as given, null and false ones left out. */
export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    } else if (name === "value" || name === "checked" || name === "selected" || name === "multiple") {
      node[name] = value;
    } else {
      node.setAttribute(name, value === true && !name.startsWith("aria-") ? "" : String(value));
    }
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** The server cleaned this HTML by an allow list (markdown.py); nothing else may be passed in. */
export function cleanedHtml(node, html) {
  node.innerHTML = html;
  return node;
}

export function button(text, onClick, kind = "") {
  return el("button", { type: "button", class: `button ${kind}`.trim(), on: { click: onClick } }, text);
}

/** What the page holds as JSON. */
export function dataOf(id) {
  return JSON.parse(document.getElementById(id).textContent);
}

/** Read aloud by screen readers, in turn. */
export function announce(text) {
  const place = document.getElementById("announcements");
  if (place) place.textContent = text;
}

export const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
