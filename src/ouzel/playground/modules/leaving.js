// Whether the page is being left. Firefox ends the requests of a page before it tells the page that it is left: without
// this, a page that is loaded again would keep a lost connection as the end of an answer.

const LONGEST_MS = 3000;

let isLeaving = false;

addEventListener("beforeunload", () => {
  isLeaving = true;
  setTimeout(() => {
    isLeaving = false; // the page has stayed, as for a download
  }, LONGEST_MS);
});

/** Waits while the page is being left, and so for ever where it is left. */
export async function untilStaying() {
  if (isLeaving) await new Promise((resolve) => setTimeout(resolve, LONGEST_MS));
}
