// The service worker of a server that has no playground any more: it deletes what the one before it kept, and itself.

const NAMES = `ouzel-shell ${new URL("../", self.location).pathname} `;

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(retire()));

async function retire() {
  const names = (await caches.keys()).filter((name) => name.startsWith(NAMES));
  await Promise.all(names.map((name) => caches.delete(name)));
  await self.registration.unregister();
}
