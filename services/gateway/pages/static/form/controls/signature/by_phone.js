// Draw on the telephone: a QR code leads to a page that holds nothing but the pad. What is drawn there appears here, and becomes the
// answer when the signer takes it.
import { get, newRequestId, page, persistently, post, Refused } from "../../server/calls.js";
import { announce, button, el } from "../../dom.js";
import { locale, t } from "../../texts.js";

const WAITS = [1_000, 3_000];
const LOOK = 2_000; // milliseconds
const SVG = "http://www.w3.org/2000/svg";
const HAS_FINGERS = "(pointer: coarse)";

/** The button that opens the way for `field`; null where a finger draws well enough. `onTaken(attachment)` when they take what was drawn. */
export function byPhone(field, onTaken) {
  if (matchMedia(HAS_FINGERS).matches) return null;
  const opener = button(t("phone.button"), () => new Dialog(field, onTaken, opener), "button--small");
  return opener;
}

class Dialog {
  #drawing = null; // the digest of the link that counts
  #step = "";
  #timer = null;

  constructor(field, onTaken, opener) {
    Object.assign(this, { field, onTaken, opener });
    this.body = el("div", { class: "phone" });
    this.status = el("p", { class: "phone__status", role: "status" });
    this.buttons = el("div", { class: "buttons" });
    const heading = el("h2", { class: "step__title", id: "phone-heading" }, t("phone.heading"));
    this.node = el("dialog", { class: "dialog", "aria-labelledby": "phone-heading" }, heading, this.status, this.body, this.buttons);
    this.node.addEventListener("close", () => this.#closed());
    document.body.append(this.node);
    this.node.showModal();
    this.#begin();
  }

  async #begin() {
    this.#forget();
    this.#show("", [this.#cancel()]);
    try {
      const drawing = await persistently(() => post("phone", { field: this.field.uuid }), WAITS);
      if (!this.node.open) {
        this.#drop(drawing.drawing);
        return;
      }
      this.#drawing = drawing.drawing;
      this.body.replaceChildren(...this.#way(drawing));
      this.#take(drawing);
      this.#wait();
    } catch (error) {
      if (error instanceof Refused && error.formEnded) this.#ended(error.state);
      this.#show((error instanceof Refused && error.message) || t("phone.failed"), [this.#anew(), this.#cancel()]);
    }
  }

  /** The code, and the same link in words: to be copied, or sent to oneself. */
  #way({ url, qr }) {
    const copied = el("span", { role: "status" });
    const copy = button(t("phone.copy"), async () => {
      try {
        await navigator.clipboard.writeText(url);
        copied.textContent = t("phone.copied");
      } catch {
        getSelection().selectAllChildren(link); // plain http, or not allowed: copied by hand
      }
    }, "button--small");
    const link = el("a", { class: "phone__link", href: url, target: "_blank", rel: "noopener noreferrer", dir: "ltr" }, url);
    return [el("p", {}, t("phone.scan")), code(qr), el("p", { class: "soft" }, t("phone.link")), link, el("p", { class: "phone__copy" }, copy, copied)];
  }

  #wait() {
    this.#timer = setTimeout(() => this.#look(), LOOK);
  }

  async #look() {
    const asked = this.#drawing;
    let told;
    try {
      told = await get(`phone/${asked}`);
    } catch (error) {
      if (error instanceof Refused) {
        this.#ended(error.state);
        return;
      }
    }
    if (!this.node.open || asked !== this.#drawing) return;
    if (told) this.#take(told);
    if (!["delivered", "over"].includes(this.#step)) this.#wait();
  }

  #take({ step, expires_at: until, attachment }) {
    if (step === this.#step) return;
    this.#step = step;
    const time = new Date(until).toLocaleTimeString(locale, { hour: "numeric", minute: "2-digit" });
    if (step === "waiting") this.#show(t("phone.waiting", { time }), [this.#cancel()]);
    else if (step === "connected") this.#show(t("phone.connected"), [this.#cancel()]);
    else if (step === "delivered" && attachment) this.#delivered(attachment);
    else this.#over();
  }

  #delivered(attachment) {
    const picture = el("img", { class: "preview__picture", src: attachment.url, alt: this.field.label });
    this.body.replaceChildren(el("div", { class: "preview" }, picture));
    const take = button(t("phone.take"), () => {
      this.taken = attachment;
      this.node.close();
    }, "button--main");
    this.#show(t("phone.delivered"), [this.#cancel(), this.#anew(), take]);
    take.focus();
  }

  #over() {
    this.body.replaceChildren();
    this.#show(t("phone.over"), [this.#cancel(), this.#anew("button--main")]);
  }

  #ended(state) {
    this.node.close();
    page.onEnded(state);
  }

  #show(text, buttons) {
    this.status.textContent = text;
    const hadFocus = this.buttons.contains(document.activeElement);
    this.buttons.replaceChildren(...buttons);
    if (hadFocus) buttons[0].focus();
  }

  #cancel() {
    return button(t("phone.cancel"), () => this.node.close());
  }

  #anew(kind = "") {
    return button(t("phone.again"), () => this.#begin(), kind);
  }

  #closed() {
    this.#forget();
    this.node.remove();
    if (!this.taken) {
      this.opener.focus();
      return;
    }
    announce(t("signature.yours"));
    this.onTaken(this.taken);
  }

  #forget() {
    clearTimeout(this.#timer);
    if (this.#drawing && this.#step !== "over") this.#drop(this.#drawing);
    this.#drawing = null;
    this.#step = "";
  }

  /** Whoever has the code can do nothing with it any more. It runs out by itself, should this not arrive. */
  #drop(drawing) {
    post(`phone/${drawing}/cancel`, { request_id: newRequestId() }, { keepalive: true }).catch(() => {});
  }
}

function code({ side, path }) {
  const svg = document.createElementNS(SVG, "svg");
  const dark = document.createElementNS(SVG, "path");
  dark.setAttribute("d", path);
  svg.append(dark);
  for (const [name, value] of Object.entries({
    class: "phone__code",
    viewBox: `0 0 ${side} ${side}`,
    "shape-rendering": "crispEdges",
    role: "img",
    "aria-label": t("phone.code"),
  })) {
    svg.setAttribute(name, value);
  }
  return svg;
}
