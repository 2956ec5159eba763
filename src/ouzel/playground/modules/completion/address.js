// The address of the completion box within the page.

const ADDRESS = "#/completion";

/** Tells whether the page is to show the completion box: by its address, or as the model cannot chat and nothing else is shown. */
export function showsCompletion(model, { isEmpty }) {
  return location.hash === ADDRESS || (isEmpty && model.whyNoChat !== "" && model.completes);
}
