// <docuseal-form>, as the peer's packages for React, Vue and Angular write it, with the events that they listen to.
import { FrameElement } from "./embedding/frame_element.js";

const NAMES = { ready: "init", loaded: "load" };

class DocusealForm extends FrameElement {
  static observedAttributes = ["data-src"];
  #begun = false;

  wishes() {
    const { email, name } = this.dataset;
    return { prefill: Object.fromEntries(Object.entries({ email, name }).filter(([, value]) => value)) };
  }

  onTold(type, detail) {
    const { submission, submitter, values = {}, redirect_url: redirect } = detail;
    if (type === "ready") {
      if (!this.#begun) this.tell("init", null);
      this.#begun = true;
    } else if (type === "loaded" && submitter) {
      this.tell(NAMES[type], { submission, submitter: { ...submitter, values }, values, template: { name: submission.name } });
    } else if (type === "completed" || type === "declined") {
      const answers = Object.entries(values).map(([field, value]) => ({ field, value }));
      const goes = this.tell(type, { ...submitter, submission_id: submission.id, status: type, submission: { id: submission.id, status: type }, values: answers });
      if (type === "completed" && goes) this.go(this.dataset.completedRedirectUrl || redirect);
    }
  }
}

if (!customElements.get("docuseal-form")) customElements.define("docuseal-form", DocusealForm);
