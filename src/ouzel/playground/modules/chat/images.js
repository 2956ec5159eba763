// Pictures that a person pastes, drops or chooses become data URLs, which go into the request as they are.

export const IMAGE_TYPES = ["image/png", "image/jpeg", "image/webp", "image/gif", "image/bmp"];

/** Returns the pictures among files, and the names of those that are none. */
export async function readImages(files) {
  const isImage = (file) => IMAGE_TYPES.includes(file.type);
  const images = await Promise.all([...files].filter(isImage).map(readImage));
  return { images, refused: [...files].filter((file) => !isImage(file)).map((file) => file.name) };
}

function readImage(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve({ name: file.name, url: reader.result });
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}
