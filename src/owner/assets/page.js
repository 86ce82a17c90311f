// Keeps what a page shows up to date, and times readable; every page works without it.
(() => {
  const main = document.querySelector("main");
  // As the server sent it. The words of a time change by themselves.
  const contentOf = (part) => part.innerHTML.replace(/(<time[^>]*>)[^<]*/g, "$1");
  let shown = contentOf(main);
  // How far this clock is ahead of the server's.
  const ahead = Date.now() - Number(main.dataset.now);
  const relative = (at) => {
    const past = Date.now() - ahead - at;
    const minutes = Math.floor(Math.abs(past) / 60000);
    if (minutes === 0) return past < 0 ? "in a moment" : "just now";
    const days = Math.floor(minutes / 1440);
    const distance = days > 1 ? `${days} days` : days === 1 ? "1 day"
      : minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h`;
    return past < 0 ? `in ${distance}` : `${distance} ago`;
  };
  const adapt = () => {
    for (const time of document.querySelectorAll("time")) {
      const at = new Date(time.dateTime);
      if (isNaN(at)) continue;
      time.textContent = time.title ? relative(at) : at.toLocaleString();
      if (time.title) time.title = at.toLocaleString();
    }
    for (const button of document.querySelectorAll("button[data-copy]")) button.hidden = false;
  };
  adapt();
  setInterval(adapt, 30000);
  // On the document: a button that an update brings needs no listener of its own.
  document.addEventListener("click", async ({ target }) => {
    const button = target.closest("button[data-copy]");
    if (!button) return;
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = button.dataset.done;
  });
  const closeMenu = ({ target, key }) => {
    const menu = document.getElementById("menu");
    if (menu && (key === "Escape" || (!key && !menu.contains(target)))) menu.open = false;
  };
  for (const kind of ["click", "keydown"]) document.addEventListener(kind, closeMenu);
  // The page of a token is never loaded again: only its line about the first call is.
  const polling = setInterval(async () => {
    const line = document.querySelector("[data-poll]");
    if (!line) return clearInterval(polling);
    const answer = await fetch(line.dataset.poll).catch(() => null);
    if (!answer?.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("first-call");
    // The agent's page has no such line after the first call.
    if (!fresh) line.replaceChildren(document.createTextNode(line.dataset.done));
    if (!fresh) line.removeAttribute("data-poll");
  }, 2000);
  if (!main.dataset.stamp) return;
  // Only for the owner, who is signed in. Fails where the certificate is not trusted; then the browser's own page is shown.
  const worker = navigator.serviceWorker?.register("/owner/worker.js", { scope: "/owner" });
  worker?.catch(() => {});
  // Web Push: the browser asks the owner, and the form brings the subscription to the server.
  const push = document.getElementById("push");
  if (push) push.hidden = !worker || !("PushManager" in window);
  push?.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      if (await Notification.requestPermission() !== "granted") throw new Error(push.dataset.denied);
      await worker;
      const { pushManager } = await navigator.serviceWorker.ready;
      // One with another key would make the browser reject the new one.
      await (await pushManager.getSubscription())?.unsubscribe();
      const made = await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: push.dataset.key });
      const { endpoint, keys } = made.toJSON();
      for (const [name, value] of Object.entries({ endpoint, ...keys })) if (push.elements[name]) push.elements[name].value = value;
      push.submit();
    } catch (cause) {
      push.querySelector("p").textContent = cause.message;
    }
  });

  const header = document.querySelector("header");
  const news = document.getElementById("news");
  const [words, show] = [news.querySelector("span"), news.querySelector("button")];
  // An update that waits, because a form is in use; and why the page may be out of date.
  let held = null, problem = "";

  const isEdited = (field) => {
    if (field.options) return field.selectedIndex !== Math.max(0, [...field.options].findIndex((one) => one.defaultSelected));
    return field.type === "hidden" ? false : field.value !== field.defaultValue || field.checked !== field.defaultChecked;
  };
  const edited = () => [...main.querySelectorAll("input,textarea,select")].filter(isEdited);
  // With a field or a button of a form in focus or pressed, the reader is about to decide on the shown content.
  const isBusy = () => main.matches(":active") || main.querySelector("form :focus:not(summary)") || edited().length > 0;

  const selectorOf = (one) => {
    if (one.id) return `#${CSS.escape(one.id)}`;
    if (one.matches("summary")) return `${selectorOf(one.parentNode)}>summary`;
    for (const name of ["href", "aria-label", "data-copy"]) {
      if (one.hasAttribute(name)) return `[${name}="${CSS.escape(one.getAttribute(name))}"]`;
    }
    return "main";
  };
  // Replaces the content. Open details stay open, typed values and the focus are kept.
  const replace = (old, fresh) => {
    const active = document.activeElement;
    const focused = active !== old && old.contains(active) && selectorOf(active);
    const opened = [...old.querySelectorAll("details[id]")].map(({ id, open }) => [id, { open }]);
    const typed = edited().map(({ id, value, checked }) => [id, { value, checked }]);
    old.replaceChildren(...fresh.childNodes);
    for (const [id, values] of [...opened, ...(old === main ? typed : [])]) {
      Object.assign(document.getElementById(id) ?? {}, values);
    }
    if (focused) old.querySelector(focused)?.focus({ preventScroll: true });
  };

  const newRequests = (fresh) => [...fresh.querySelectorAll("article[id]")].filter(({ id }) => !document.getElementById(id));
  const waiting = (part) => Number(part.querySelector("h1")?.dataset.waiting ?? 0);
  const describe = (fresh) => {
    // One page of the inbox does not show all requests.
    const count = Math.max(newRequests(fresh).length, waiting(fresh) - waiting(main));
    if (count > 0) return count === 1 ? news.dataset.one : `${count} ${news.dataset.many}`;
    return news.dataset.changed;
  };
  const announce = () => {
    const text = [problem && news.dataset[problem], held && describe(held)].filter(Boolean).join(" ");
    if (words.textContent !== text) words.textContent = text;
    show.hidden = !held;
    news.firstElementChild.hidden = !text;
  };
  const showContent = (fresh) => {
    held = null;
    shown = contentOf(fresh);
    replace(main, fresh);
    adapt();
  };
  show.addEventListener("click", () => {
    const first = newRequests(held)[0]?.id;
    showContent(held);
    announce();
    (first ? document.getElementById(first).querySelector("a") : main).focus();
  });
  const count = /^\(\d+\) /;
  const accept = (fresh) => {
    replace(header, fresh.querySelector("header"));
    const content = fresh.querySelector("main");
    if (main.dataset.header) {
      document.title = (fresh.title.match(count)?.[0] ?? "") + document.title.replace(count, "");
      return;
    }
    document.title = fresh.title;
    held = contentOf(content) === shown ? null : content;
    if (held && !isBusy()) showContent(content);
  };

  const events = new EventSource(`/owner/events?seen=${main.dataset.stamp}`);
  const update = async () => {
    let answer, text;
    try {
      answer = await fetch(main.dataset.header ?? location.href);
      // The session has ended.
      if (answer.redirected) return location.reload();
      text = await answer.text();
      problem = answer.ok && events.readyState !== EventSource.CLOSED ? "" : "stale";
    } catch {
      problem = "lost";
    }
    if (answer?.ok && text) accept(new DOMParser().parseFromString(text, "text/html"));
    announce();
  };
  let isDue = false, isRunning = false;
  const updateSoon = async () => {
    isDue = true;
    if (isRunning) return;
    isRunning = true;
    while (isDue) {
      isDue = false;
      await update();
      // All changes of a second are one update.
      await new Promise((done) => setTimeout(done, problem === "lost" ? 3000 : 1000));
      isDue ||= problem === "lost";
    }
    isRunning = false;
  };
  events.addEventListener("message", updateSoon);
  events.addEventListener("error", () => {
    // A restart of the server is shorter; the browser connects again by itself.
    const delay = events.readyState === EventSource.CLOSED ? 0 : 5000;
    setTimeout(() => events.readyState !== EventSource.OPEN && updateSoon(), delay);
  });
  addEventListener("pagehide", () => events.close());
  addEventListener("pageshow", ({ persisted }) => persisted && location.reload());
})();
