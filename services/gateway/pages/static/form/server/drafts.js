// Answers that the server has not got yet, and which field was being asked for, kept in this browser tab so that a reload
// loses nothing. They go when the answers are saved, and with the tab.

export class Drafts {
  constructor(storage = tabStorage(), key = `drafts:${location.pathname}`) {
    this.storage = storage;
    this.key = key;
    const { values = {}, place = null } = this.#stored();
    this.values = new Map(Object.entries(values));
    this.place = place;
  }

  entries() {
    return [...this.values.entries()];
  }

  has(uuid) {
    return this.values.has(uuid);
  }

  keep(uuid, value) {
    this.values.set(uuid, value);
    this.#store();
  }

  /** The server has `values`; what was typed in the meantime stays. */
  forget(values) {
    for (const [uuid, value] of Object.entries(values)) {
      if (JSON.stringify(this.values.get(uuid)) === JSON.stringify(value)) this.values.delete(uuid);
    }
    this.#store();
  }

  /** `uuid` of the field that is asked for now, null for none. */
  stayAt(uuid) {
    this.place = uuid;
    this.#store();
  }

  clear() {
    this.values.clear();
    this.place = null;
    this.#store();
  }

  #stored() {
    try {
      return JSON.parse(this.storage.getItem(this.key)) ?? {};
    } catch {
      return {};
    }
  }

  #store() {
    try {
      const stored = { values: Object.fromEntries(this.values), place: this.place };
      if (this.values.size || this.place) this.storage.setItem(this.key, JSON.stringify(stored));
      else this.storage.removeItem(this.key);
    } catch {
      // A browser that keeps nothing (private windows, full storage): the server still gets every step.
    }
  }
}

/** Refused to pages in a frame by browsers that keep nothing for strangers. */
function tabStorage() {
  try {
    return sessionStorage;
  } catch {
    return null;
  }
}
