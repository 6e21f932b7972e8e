// <countersign-form src="https://sign.example.com/s/…"></countersign-form>: docs/embedding.md.
import { FrameElement } from "./embedding/frame_element.js";

class CountersignForm extends FrameElement {
  static observedAttributes = ["src"];

  wishes() {
    const given = ["email", "name", "phone"].map((name) => [name, this.getAttribute(name)]).filter(([, value]) => value);
    return { prefill: Object.fromEntries(given) };
  }

  onTold(type, detail) {
    if (type === "resized" && this.hasAttribute("autosize")) this.style.height = `${detail.height}px`;
    const goes = this.tell(type, detail);
    if (type === "completed" && goes && this.getAttribute("redirect") !== "none") this.go(detail.redirect_url);
  }
}

if (!customElements.get("countersign-form")) customElements.define("countersign-form", CountersignForm);
