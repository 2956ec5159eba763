// A browser makes a click of a press only where the pointer goes down and up on one element: the list is not drawn in between.

export class Press {
  #isDown = false;
  #due = null; // waits for the end of the press

  constructor(place) {
    place.addEventListener("pointerdown", ({ button }) => (this.#isDown = button === 0));
    for (const name of ["pointerup", "pointercancel", "blur"]) addEventListener(name, () => this.#end());
  }

  /** Calls `act` now, or after the press. The newest `act` of a press counts. */
  after(act) {
    if (this.#isDown) this.#due = act;
    else act();
  }

  #end() {
    this.#isDown = false;
    if (this.#due !== null) setTimeout(this.#due); // the click comes before it
    this.#due = null;
  }
}
