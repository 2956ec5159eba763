// The service worker: it keeps the page's shell (HTML, styles, modules, texts), so that the page opens while the server is
// away. It keeps nothing else: no answer of the API, no file, no key. docs/decisions/0072-offline-shell.md has its rules.
// The server writes the line before this one: SHELL has the build, the names of the files, and the header with the build.

const ROOT = new URL("../", self.location);
const NAMES = `ouzel-shell ${ROOT.pathname} `; // one origin may have several servers, below several paths
const CACHE = NAMES + SHELL.build;
const AWAY = [502, 503, 504]; // what a proxy answers for a server that is away
const FILES = new Set(SHELL.files.map(urlOf));
const TEXTS = urlOf("texts/");

const builds = new Map(); // the build of each page that was opened since the worker started, by the id of its client

self.addEventListener("install", (event) => event.waitUntil(install()));
self.addEventListener("activate", (event) => event.waitUntil(removeOthers()));
self.addEventListener("fetch", (event) => {
  const { method, mode, url } = event.request;
  const address = url.split("#")[0];
  if (method !== "GET") return;
  if (mode === "navigate") {
    if (address === ROOT.href) event.respondWith(openPage(event));
  } else if (FILES.has(address) || address.startsWith(TEXTS)) event.respondWith(openFile(event));
});

async function install() {
  const cache = await caches.open(CACHE);
  try {
    await Promise.all([...FILES].map((url) => load(cache, url)));
    const page = await fetchOfBuild(ROOT.href, { headers: { accept: "text/html" }, cache: "reload" });
    await keepPage(cache, page);
  } catch (error) {
    await caches.delete(CACHE); // half a shell is none
    throw error;
  }
  await self.skipWaiting();
}

/** Answers for the page: the server's own, or where the server is away the one that was kept. */
async function openPage(event) {
  const answer = await fetch(event.request).catch(() => null);
  if (answer === null || AWAY.includes(answer.status)) {
    const kept = await find(ROOT.href);
    if (kept !== undefined) builds.set(event.resultingClientId, SHELL.build);
    return kept ?? answer ?? Response.error();
  }
  const build = answer.headers.get(SHELL.header);
  builds.set(event.resultingClientId, build);
  if (build === SHELL.build) event.waitUntil(keepPage(await caches.open(CACHE), answer.clone())); // in the language of now
  else if (answer.ok && build === null) event.waitUntil(leave());
  return answer;
}

/** Answers for a file of the shell. A page of this build gets files of this build only, any other page none of them. */
async function openFile({ request, clientId }) {
  const build = builds.get(clientId);
  if (build === SHELL.build) return (await find(request.url)) ?? fetch(request);
  const answer = await fetch(request).catch(() => null);
  if (answer !== null) return answer;
  // The worker was stopped since the page was opened, and knows no page any more.
  const kept = build === undefined ? await find(request.url) : undefined;
  return kept ?? Response.error();
}

async function keepPage(cache, page) {
  const [, language] = /<html lang="(\w+)"/.exec(await page.clone().text());
  const texts = urlOf(`texts/${language}.json`);
  if ((await find(texts)) === undefined) await load(cache, texts);
  await cache.put(ROOT.href, page);
}

async function load(cache, url) {
  await cache.put(url, await fetchOfBuild(url, { cache: "reload" }));
}

/** Gets something from the server. Throws where it is not there, or of another build. */
async function fetchOfBuild(url, options) {
  const answer = await fetch(url, options);
  if (!answer.ok || answer.headers.get(SHELL.header) !== SHELL.build) throw new Error(`${url} is not of this build`);
  return answer;
}

async function find(url) {
  return (await caches.open(CACHE)).match(url, { ignoreVary: true });
}

/** Ends where another program, or a server without playground, now answers at this address. */
async function leave() {
  await caches.delete(CACHE);
  await removeOthers();
  await self.registration.unregister();
}

async function removeOthers() {
  const names = (await caches.keys()).filter((name) => name.startsWith(NAMES) && name !== CACHE);
  await Promise.all(names.map((name) => caches.delete(name)));
}

function urlOf(name) {
  return new URL(`playground/${name}`, ROOT).href;
}
