// Answers that the server has not got yet, kept in this browser tab so that a reload loses nothing. They go when they are
// saved, and with the tab.

export class Drafts {
  constructor(storage = sessionStorage, key = `drafts:${location.pathname}`) {
    this.storage = storage;
    this.key = key;
    this.values = new Map(Object.entries(this.#stored()));
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

  clear() {
    this.values.clear();
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
      if (this.values.size) this.storage.setItem(this.key, JSON.stringify(Object.fromEntries(this.values)));
      else this.storage.removeItem(this.key);
    } catch {
      // A browser that keeps nothing (private windows, full storage): the server still gets every step.
    }
  }
}
