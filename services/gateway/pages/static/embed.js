// <countersign-form src="https://sign.example.com/s/…"></countersign-form>: docs/embedding.md.
import { FrameElement } from "./embedding/frame_element.js";

const STYLE = ["accent-color", "background-color", "text-color", "corner-radius", "font-family"];

class CountersignForm extends FrameElement {
  static observedAttributes = ["src"];

  wishes() {
    const given = ["email", "name", "phone"].map((name) => [name, this.getAttribute(name)]).filter(([, value]) => value);
    // A variable of the page's style sheet, or an attribute of the same name, which goes first.
    const styled = getComputedStyle(this);
    const looks = STYLE.map((name) => [name, this.getAttribute(name) ?? styled.getPropertyValue(`--countersign-${name}`).trim()]);
    return { prefill: Object.fromEntries(given), style: Object.fromEntries(looks.filter(([, value]) => value)) };
  }

  onTold(type, detail) {
    if (type === "resized" && this.hasAttribute("autosize")) this.style.height = `${detail.height}px`;
    if (type === "refused") for (const { name, reason } of detail.problems) console.error(`countersign-form: ${name} ${reason}`);
    const goes = this.tell(type, detail);
    if (type === "completed" && goes && this.getAttribute("redirect") !== "none") this.go(detail.redirect_url);
  }
}

if (!customElements.get("countersign-form")) customElements.define("countersign-form", CountersignForm);
