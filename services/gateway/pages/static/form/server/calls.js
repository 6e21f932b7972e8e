// The calls to the server, under the address of this page.

const HERE = location.pathname.replace(/\/$/, "");
export const TIMEOUT = 40_000;
const UPLOAD_TIMEOUT = 180_000;
const REASON = "reason:";

/** `shown` is what the page shows, as the server named it: sent along with everything that is saved and signed. `onEnded()`
    shows what became of a form that is open no more. */
export const page = { shown: null, onEnded: () => {} };

/** The server understood and said no; asking again the same way will not help. */
export class Refused extends Error {
  constructor(status, body) {
    super(body.error ?? "");
    this.status = status;
    this.code = body.code ?? "";
    this.details = body.details ?? [];
  }

  /** The form itself is no longer what this page shows: signed elsewhere, declined, expired, withdrawn. */
  get formChanged() {
    if (this.changedMeanwhile) return false;
    return this.status !== 422 || this.details.some(({ field }) => field === "state");
  }

  /** What the form is now, where the server says so. */
  get state() {
    return this.details.find(({ field }) => field === "state")?.reason ?? "";
  }

  /** The server has said that the form is not open, or that the link opens nothing any more. */
  get formEnded() {
    return this.status === 404 || this.state !== "";
  }

  /** The sender has changed what is to be signed since this page was opened. */
  get changedMeanwhile() {
    return this.code === "changed_meanwhile";
  }
}

/** No answer, or one that says: later. Asking again with the same request id is harmless. */
export class Unreachable extends Error {
  constructor(message, body) {
    super(message);
    this.details = body?.details ?? [];
  }
}

/**
 * What has changed since the version that the page knows, null when nothing has. `shown` is what it shows, if it shows a form.
 */
export function news(known, shown) {
  const headers = known ? { "If-None-Match": `"${known}"` } : {};
  const query = shown ? `?${new URLSearchParams({ shown })}` : "";
  return call(`news${query}`, { method: "GET", cache: "no-store", headers }, TIMEOUT, [304]);
}

export const get = (name) => call(name, { method: "GET" }, TIMEOUT);

/** Whoever gives a `signal` sees to it themselves that nobody waits for ever. */
export const post = (name, body, { keepalive = false, signal } = {}) =>
  call(
    name,
    {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ shown: page.shown, ...body }),
      keepalive,
      signal,
    },
    TIMEOUT,
  );

/**
 * What `values` and `complete` take: answers by field uuid. The reason for signing that was chosen for a signature is an
 * answer of its own, beside the signature.
 */
export function answersBody(answers) {
  const body = { request_id: newRequestId(), values: {}, reasons: {} };
  for (const [key, answer] of Object.entries(answers)) {
    if (key.startsWith(REASON)) body.reasons[key.slice(REASON.length)] = answer;
    else body.values[key] = answer;
  }
  return body;
}

export const reasonKey = (uuid) => REASON + uuid;

/** Sends a file; answers with the attachment `{uuid, url, filename, content_type}`. */
export function sendFile(file, filename, type, requestId) {
  const form = new FormData();
  form.append("type", type);
  form.append("request_id", requestId);
  form.append("file", file, filename);
  return call("attachments", { method: "POST", body: form }, UPLOAD_TIMEOUT);
}

/** A fresh id for a command. `crypto.randomUUID` is missing on plain-http addresses. */
export function newRequestId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Repeats `attempt` while the server is unreachable, `waits` (milliseconds) apart. */
export async function persistently(attempt, waits, onWaiting = () => {}) {
  for (const wait of [...waits, null]) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof Unreachable) || wait === null) throw error;
      onWaiting();
      await pause(wait);
    }
  }
}

/** Waits, but not longer than until the network is back. */
export function pause(milliseconds) {
  return new Promise((resolve) => {
    const timer = setTimeout(done, milliseconds);
    addEventListener("online", done, { once: true });
    function done() {
      clearTimeout(timer);
      removeEventListener("online", done);
      resolve();
    }
  });
}

/** `silent`: statuses that are an answer without a body. */
async function call(name, options, timeout, silent = []) {
  let answer;
  try {
    answer = await fetch(`${HERE}/${name}`, {
      ...options,
      headers: { Accept: "application/json", ...options.headers },
      signal: options.signal ?? AbortSignal.timeout?.(timeout),
    });
  } catch (error) {
    throw new Unreachable(String(error));
  }
  if (silent.includes(answer.status)) return null;
  let body;
  try {
    body = await answer.json();
  } catch {
    body = null;
  }
  if (answer.ok && body !== null) return body;
  if (answer.status >= 500 || answer.status === 429 || answer.ok) throw new Unreachable(`status ${answer.status}`, body);
  throw new Refused(answer.status, body ?? {});
}
