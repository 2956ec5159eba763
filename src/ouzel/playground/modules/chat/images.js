// Pictures that a person pastes, drops or chooses become data URLs, which go into the request as they are.

export const IMAGE_TYPES = ["image/png", "image/jpeg", "image/webp", "image/gif", "image/bmp"];
/** A model that reads pictures reads PDFs too: each page is a picture. */
export const FILE_TYPES = [...IMAGE_TYPES, "application/pdf"];

/** Tells a picture from another file, by its data URL or address. */
export function isPicture(url) {
  return !url.startsWith("data:application/");
}

/** Returns the pictures among files, and the names of those that are none, or cannot be read any more. */
export async function readImages(files) {
  const read = await Promise.all(files.map(async (file) => ({ name: file.name, url: await urlOf(file) })));
  return { images: read.filter(({ url }) => url !== null), refused: read.filter(({ url }) => url === null).map(({ name }) => name) };
}

function urlOf(file) {
  if (!FILE_TYPES.includes(file.type)) return null;
  return new Promise((resolve) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => resolve(null);
    reader.readAsDataURL(file);
  });
}
