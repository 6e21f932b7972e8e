// The page in a frame of another site: tells whoever framed it what happens here. docs/embedding.md describes the messages.
//
// Messages go to the parent alone, and only when its origin is one that the account allows; what comes from anywhere else is ignored.

import { dress } from "./theme.js";

const VERSION = 1;
const MOST_WAITING = 20;

export const framed = parent !== window;

const allowed = (document.querySelector('meta[name="countersign-framers"]')?.content ?? "").split(" ").filter(Boolean);
const waiting = [];
const listeners = [];
let embedder = null; // its origin, once it has said hello
let wishes = {};

/** Tells the embedder, now or when it has said hello. */
export function tell(type, detail = {}) {
  if (!framed) return;
  const message = { countersign: VERSION, type, detail };
  if (embedder) parent.postMessage(message, embedder);
  else if (waiting.length < MOST_WAITING) waiting.push(message);
}

/** `listener(wishes)` hears what the embedder asks for, now or when it does: `{ prefill: { email, name, phone }, style }`. */
export function onWishes(listener) {
  listeners.push(listener);
  if (embedder) listener(wishes);
}

/** `https://*.example.com` stands for any host below it, as in Content-Security-Policy. */
export function isAllowed(origin, sources = allowed, own = location.origin) {
  return sources.some((source) => {
    if (source === "'self'") return origin === own;
    const [scheme, host] = source.split("://*.");
    if (!host) return origin === source;
    return origin.startsWith(`${scheme}://`) && origin.endsWith(`.${host}`) && !/[/@?#]/.test(origin.slice(scheme.length + 3));
  });
}

function heard({ source, origin, data }) {
  if (source !== parent || !isAllowed(origin)) return;
  if (data?.countersign !== VERSION || data.type !== "hello") return;
  embedder = origin;
  wishes = typeof data.wishes === "object" && data.wishes ? data.wishes : {};
  for (const message of waiting.splice(0)) parent.postMessage(message, embedder);
  const problems = dress(typeof wishes.style === "object" ? wishes.style : {});
  if (problems.length) tell("refused", { problems });
  for (const listener of listeners) listener(wishes);
}

if (framed) {
  addEventListener("message", heard);
  // Says nothing but that it is there, so that the embedder says hello.
  parent.postMessage({ countersign: VERSION, type: "knock" }, "*");
  // What leads elsewhere leads the whole window there.
  for (const link of document.querySelectorAll("a[data-leaves]")) link.target = "_top";
  const state = document.querySelector("[data-state]")?.dataset.state ?? "start";
  document.addEventListener("DOMContentLoaded", () => tell("ready", { state }));
  addEventListener("load", () => tell("loaded", { state, ...who() }));
  let height = 0;
  new ResizeObserver(() => {
    const now = Math.ceil(document.documentElement.getBoundingClientRect().height);
    if (now !== height) tell("resized", { height: (height = now) });
  }).observe(document.documentElement);
}

/** Whose form it is, as the page's data have it. */
export function who(values = null) {
  const place = document.getElementById("form-data");
  if (!place) return {};
  const { submission_id, submission_name, submitter_id, submitter_name, submitter_email, role } = JSON.parse(place.textContent);
  return {
    submission: { id: submission_id, name: submission_name },
    submitter: { id: submitter_id, slug: location.pathname.split("/").pop(), name: submitter_name, email: submitter_email, role },
    ...(values ? { values } : {}),
  };
}
