// An element that shows a signing page in a frame, and turns the page's messages into events.

const VERSION = 1;

/** `source` is the attribute with the address. What the classes of both elements share. */
export class FrameElement extends HTMLElement {
  #frame = null;
  #origin = "";
  #heard = (event) => {
    if (event.source !== this.#frame?.contentWindow || event.origin !== this.#origin) return;
    const { countersign, type, detail } = event.data ?? {};
    if (countersign !== VERSION || typeof type !== "string") return;
    if (type === "knock") this.#frame.contentWindow.postMessage({ countersign: VERSION, type: "hello", wishes: this.wishes() }, this.#origin);
    else this.onTold(type, detail ?? {});
  };

  connectedCallback() {
    addEventListener("message", this.#heard);
    this.#show();
  }

  disconnectedCallback() {
    removeEventListener("message", this.#heard);
    this.#frame?.remove();
    this.#frame = null;
  }

  attributeChangedCallback() {
    if (this.isConnected) this.#show();
  }

  /** The address in the attribute, null when there is none that a frame may show. */
  get address() {
    try {
      const address = new URL(this.getAttribute(this.constructor.observedAttributes[0]) || "", document.baseURI);
      return /^https?:$/.test(address.protocol) && /\/[sd]\/[^/]+\/?$/.test(address.pathname) ? address : null;
    } catch {
      return null;
    }
  }

  wishes() {
    return {};
  }

  /** The page is left for where the sender wants it, unless whoever listens to `completed` prevents that. */
  go(address) {
    if (/^https?:\/\//.test(address ?? "")) location.assign(address);
  }

  tell(name, detail) {
    return this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, cancelable: true }));
  }

  #show() {
    const { address } = this;
    if (address?.href === this.#frame?.src) return;
    this.#frame?.remove();
    this.#frame = null;
    if (!address) return;
    const frame = document.createElement("iframe");
    frame.src = address.href;
    frame.title = this.getAttribute("title") || "Document to sign";
    Object.assign(frame.style, { display: "block", width: "100%", height: "100%", minHeight: "inherit", border: "0" });
    if (!this.style.display) this.style.display = "block";
    if (!this.style.height && !this.style.minHeight) this.style.minHeight = "min(100vh, 50rem)";
    this.#origin = address.origin;
    this.#frame = frame;
    this.append(frame);
  }
}
