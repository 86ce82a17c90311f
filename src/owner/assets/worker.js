// Shows push messages, and the page `offline` when a page cannot be fetched. It keeps nothing else: every page comes
// from the server.
const KEPT = "offline";
const PAGES = ["/owner/offline", "/owner/style.css", "/owner/icon.svg"];
self.addEventListener("install", (event) => {
  self.skipWaiting();
  event.waitUntil(caches.open(KEPT).then((cache) => cache.addAll(PAGES.map((page) => new Request(page, { cache: "reload" })))));
});
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("fetch", (event) => {
  const { request } = event;
  const kept = () => caches.match(request.mode === "navigate" ? PAGES[0] : request, { ignoreSearch: true });
  const { pathname } = new URL(request.url);
  // Only what the page needs is answered here; streams and forms stay the browser's own.
  if (request.method === "GET" && (request.mode === "navigate" || PAGES.includes(pathname)))
    event.respondWith(fetch(request).catch(async (cause) => (await kept()) ?? Promise.reject(cause)));
});
self.addEventListener("push", (event) => {
  const { title, body, url } = event.data.json();
  // A request is shown once, however often its message arrives.
  const tag = url?.includes("/changes/") ? url : undefined;
  event.waitUntil(self.registration.showNotification(title, { body, tag, icon: "/owner/icon.png", data: url }));
});
self.addEventListener("notificationclick", (event) => {
  const { notification } = event;
  notification.close();
  const url = new URL(notification.data ?? "/owner", self.location.origin);
  const isOurs = url.origin === self.location.origin && url.pathname.startsWith("/owner");
  event.waitUntil(self.clients.openWindow(isOurs ? url.href : "/owner"));
});
