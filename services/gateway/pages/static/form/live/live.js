// Keeps a form that is open in step with what happens elsewhere: what the sender changes, what ends it, what the same signer
// does in another tab or on another device. Nothing is taken from under somebody's hands: who is typing or drawing is told, and
// looks when they are ready.
import { get, page } from "../server/calls.js";
import { announce, button, el } from "../dom.js";
import { moment } from "../panel/start_screen.js";
import { t } from "../texts.js";
import { Watch } from "./watch.js";

const NOTICES = "live-notices";

export class Live {
  #place;
  #saved = new Map();
  #sent = new Set();
  #waiting = false;

  /** `onEnded()` when the form is open no more; `onChanged(error)` when what is to be signed is another now. */
  constructor({ form, state, panel, view, saver, completing, place, onEnded, onChanged }) {
    Object.assign(this, { form, state, panel, view, saver, completing, onEnded, onChanged });
    this.#place = place;
    for (const { uuid, mine, value } of form.fields) if (mine) this.#saved.set(uuid, canonical(value));
    this.watch = new Watch({
      onNews: (told, mark) => this.#news(told, mark),
      onGone: onEnded,
      shown: () => page.shown,
      mark: () => this.#mark(),
    });
  }

  /** The server has got `values` from this page. It may keep them in another form, such as a number without its zeros. */
  savedHere(values) {
    for (const [key, value] of Object.entries(values)) {
      this.#saved.set(key, canonical(value));
      this.#sent.add(key);
    }
    this.watch.tellOthers();
  }

  async #news(told, mark) {
    // Its own answer says what became of it.
    if (this.completing.running || document.querySelector("dialog[open]")) return this.watch.forget();
    if (told.state !== "open") return this.#ended(told.state);
    if (page.shown && told.shown !== page.shown) return this.#changed(told);
    this.#outline(told);
    await this.#values(told, mark);
  }

  #ended(state) {
    this.watch.stop();
    this.onEnded(state);
  }

  /** The sender has changed what is to be signed. */
  #changed({ changes }) {
    if (!this.#busy) {
      this.watch.stop();
      this.onChanged({ details: changes });
      return;
    }
    this.watch.forget(); // once they have stopped, it is shown by itself
    if (this.#waiting) return;
    this.#waiting = true;
    this.#say("changed", t("changed.heading"), button(t("live.look"), () => this.onChanged({ details: changes }), "button--small"), "alert");
  }

  /** Something is typed or drawn here that the server does not have yet. */
  get #busy() {
    return this.state.drafts.entries().length > 0 || this.panel.engaged || this.saver.unsaved;
  }

  /** The name and the deadline are no part of what is signed: they are just shown as they are now. */
  #outline({ submission_name: name, expire_at: until }) {
    const { form } = this;
    if (name && name !== form.submission_name) {
      form.submission_name = name;
      document.querySelector("h1").textContent = name;
      document.title = t("page.title", { name });
      this.#say("name", t("live.name", { name }));
      this.panel.renew();
    }
    if (time(until) !== time(form.expire_at)) {
      form.expire_at = until;
      this.#say("until", until ? [`${t("live.until")} `, moment(until)] : t("live.no_end"));
      this.panel.renew();
    }
  }

  /** What the same signer has saved elsewhere. What is typed here and not saved yet is newer. */
  async #values({ values, reasons }, mark) {
    if (mark === null || mark !== this.#mark()) return this.watch.forget(); // saved meanwhile: the answer may be the older one
    const told = Object.entries({ ...values, ...Object.fromEntries(Object.entries(reasons).map(([uuid, reason]) => [`reason:${uuid}`, reason])) });
    const news = told.filter(([key, value]) => this.#saved.get(key) !== canonical(value) && !this.state.drafts.has(key));
    const taken = news.filter(([key]) => this.state.mayAdopt(key));
    if (taken.some(([key, value]) => this.state.byUuid.has(key) && !this.state.attachmentsKnown(key, value))) {
      for (const attachment of (await get("form")).attachments) this.state.addAttachment(attachment);
      if (mark !== this.#mark()) return this.watch.forget();
    }
    for (const [key, value] of news) this.#saved.set(key, canonical(value));
    for (const [key, value] of taken) this.state.adopt(key, value);
    const elsewhere = taken.map(([key]) => key).filter((key) => !this.#sent.has(key));
    for (const [key] of told) this.#sent.delete(key);
    if (!elsewhere.length) return;
    this.view.mark(elsewhere);
    this.panel.renew(elsewhere);
    const names = elsewhere.map((key) => this.state.byUuid.get(key)?.label).filter(Boolean);
    this.#say("elsewhere", t("live.elsewhere", { names: new Intl.ListFormat(this.state.locale).format(names) }));
  }

  /** Null while something is on its way, else how much has been. */
  #mark() {
    return this.saver.unsaved ? null : this.saver.sent;
  }

  /** One notice of each `kind`, above the form. */
  #say(kind, text, more = null, role = "note") {
    let all = document.getElementById(NOTICES);
    if (!all) {
      all = el("div", { id: NOTICES });
      this.#place.prepend(all);
    }
    all.querySelector(`[data-kind="${kind}"]`)?.remove();
    const close = more ?? button(t("live.seen"), () => notice.remove(), "button--small");
    const notice = el("div", { class: "changes changes--calm", "data-kind": kind, role }, el("p", {}, text), close);
    all.append(notice);
    if (role === "note") announce(notice.querySelector("p").textContent); // an alert is read by itself
  }
}

const time = (iso) => (iso ? Date.parse(iso) : null);

/** Values as they are compared: nothing is the same as empty. */
function canonical(value) {
  const empty = value === null || value === undefined || value === "" || (Array.isArray(value) && !value.length);
  return JSON.stringify(empty ? null : value);
}
