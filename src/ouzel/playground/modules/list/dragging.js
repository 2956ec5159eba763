// A conversation of the list is dragged onto a folder, or out of its folder onto the days. The dialog does the same without a pointer.

const TYPE = "application/x-ouzel-conversation";

/** `move` gets the key of a conversation and the name of a folder; null is none. */
export function listenToDrags(list, move) {
  let target = null; // the folder under the pointer, or the list
  const mark = (node) => {
    target?.classList.remove("drop-here");
    node?.classList.add("drop-here");
    target = node;
  };
  const carries = ({ dataTransfer }) => dataTransfer.types.includes(TYPE);
  list.addEventListener("dragstart", ({ target: dragged, dataTransfer }) => {
    const row = dragged instanceof Element ? dragged.closest("[data-key]") : null; // a selected text can be dragged too
    if (row === null) return;
    dataTransfer.setData(TYPE, row.dataset.key);
    dataTransfer.effectAllowed = "all";
  });
  list.addEventListener("dragover", (event) => {
    if (!carries(event)) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "move";
    mark(event.target.closest(".folder") ?? list);
  });
  list.addEventListener("dragleave", (event) => {
    if (!list.contains(event.relatedTarget)) mark(null);
  });
  list.addEventListener("drop", (event) => {
    if (!carries(event)) return;
    event.preventDefault();
    mark(null);
    const head = event.target.closest(".folder")?.querySelector("[data-folder]") ?? null;
    move(event.dataTransfer.getData(TYPE), head === null ? null : head.dataset.folder);
  });
  list.addEventListener("dragend", () => mark(null));
}
