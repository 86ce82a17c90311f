// Keeps what a page shows true, and times readable; every page works without it.
(() => {
  const main = document.querySelector("main");
  const times = () => {
    for (const time of document.querySelectorAll("time")) {
      const at = new Date(time.dateTime);
      if (!isNaN(at)) time.textContent = at.toLocaleString();
    }
  };
  times();
  for (const button of document.querySelectorAll("button[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
      button.textContent = button.dataset.done;
    });
  }
  if (!main.dataset.live) return;
  let dirty = false, waiting = false, last = 0;
  main.addEventListener("input", () => { dirty = true; });
  const busy = () => dirty || (main.contains(document.activeElement) && document.activeElement !== main);
  const refresh = async () => {
    waiting = false;
    last = Date.now();
    const answer = await fetch(location.href, { headers: { "x-part": "1" } });
    if (answer.redirected) return location.reload();
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (busy()) return;
    main.replaceChildren(...fresh.querySelector("main").childNodes);
    document.querySelector("nav").replaceChildren(...fresh.querySelector("nav").childNodes);
    document.title = fresh.title;
    times();
  };
  const events = new EventSource(`/owner/events?seen=${main.dataset.live}`);
  // Ended for good: nobody is signed in here any more.
  events.addEventListener("error", () => {
    if (events.readyState === EventSource.CLOSED) refresh();
  });
  events.addEventListener("message", () => {
    if (waiting || busy()) return;
    waiting = true;
    // Many changes in a second are one look.
    setTimeout(refresh, Math.max(0, 1000 - (Date.now() - last)));
  });
  addEventListener("pagehide", () => events.close());
})();
