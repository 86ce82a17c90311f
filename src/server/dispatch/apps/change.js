// The card of a change. It shows and opens; only the owner's page approves or rejects.
const WORDS = {
  pending: "Waits for the owner", approved: "Approved, starts soon", running: "Running", applied: "Done",
  failed: "Failed", rejected: "Rejected: nothing was done", expired: "Expired: nothing was done",
  withdrawn: "Withdrawn: nothing was done", unknown: "The outcome is unknown",
};
let change = {}, asked = {}, now = null;
const isText = (value) => typeof value === "string";
const lines = (value) => (isText(value) ? value : JSON.stringify(value, null, 2)).split("\n");
// The arguments of the proposed call: of the change, or else of the call that proposed it.
const wanted = () => {
  if (change.arguments) return change.arguments;
  if (asked.arguments && asked.tool === change.tool) return asked.arguments;
  const { reason, ...others } = asked;
  return others;
};
// The current value of an argument. The state has it under its own name or in camel case; a switch has its tool's.
const current = (key) => {
  if (key === "value") return now ?? undefined;
  const own = key === "enabled" || key === "on" ? change.tool.replace(/^[^_]*_/, "") : key;
  const camel = own.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
  for (const part of [now, now?.config]) {
    const found = [own, camel].find((member) => part && typeof part === "object" && Object.hasOwn(part, member));
    if (found) return part[found];
  }
  return undefined;
};
// The lines that differ, between those that are the same.
const compare = (before, after) => {
  const [old, later] = [lines(before), lines(after)];
  let [start, end] = [0, 0];
  const most = Math.min(old.length, later.length);
  while (start < most && old[start] === later[start]) start += 1;
  while (end < most - start && old.at(-1 - end) === later.at(-1 - end)) end += 1;
  const part = (all) => all.slice(start, all.length - end);
  return el("pre", old.slice(0, start).join("\n"), ...part(old).map((line) => el("del", `- ${line}`)),
    ...part(later).map((line) => el("ins", `+ ${line}`)), old.slice(old.length - end).join("\n"));
};
const argument = ([key, value]) => {
  const before = current(key);
  return [el("dt", name(key)), el("dd", before === undefined ? el("pre", lines(value).join("\n")) : compare(before, value))];
};
const fact = (label, value) => (value === undefined ? [] : [el("dt", label), el("dd", value)]);
const openPage = async () => {
  const url = `${root.dataset.page}/owner/changes/${change.change}`;
  const shown = await ask("ui/open-link", { url }).then((result) => !result.isError, () => false);
  if (!shown) say(`The client did not open the page: ${url}`, "bad");
};
const card = {
  input(given) {
    asked = given;
    card.draw();
  },
  result({ data, text, failed }) {
    if (!isText(data.change)) return say(text || "No change.", failed ? "bad" : "");
    change = { ...change, ...data };
    card.draw();
    if (can.serverTools) card.refresh();
  },
  async refresh() {
    const found = await call("change_get", { change: change.change });
    change = { ...change, ...found };
    const target = change.target, escape = (text) => text.replaceAll("~", "~0").replaceAll("/", "~1");
    let pointer;
    if (isText(target) && target.startsWith("/")) pointer = target;
    else if (isText(wanted().container)) pointer = `/public/packageData/${escape(wanted().container)}`;
    else if (isText(wanted().unit)) pointer = `/public/units/${escape(wanted().unit)}`;
    // After the change the current value is its result.
    const state = pointer && change.status === "pending" ? await call("state_get", { pointer }) : null;
    now = state?.value ?? null;
    card.draw();
  },
  draw() {
    if (!change.change) return;
    const kind = change.status === "applied" ? "good" : /failed|rejected/.test(change.status) ? "bad" : "";
    say(WORDS[change.status] ?? change.status, kind);
    const rows = Object.entries(wanted());
    const facts = el("dl", ...fact("Tool", el("code", change.tool)),
      ...fact("Target", change.target && name(change.target)), ...fact("Agent", change.agent && name(change.agent)),
      ...fact("Reason of the agent", change.reason ?? asked.reason), ...fact("Details", change.words),
      ...fact("Expires", change.status === "pending" ? time(change.expires) : undefined),
      ...fact("Change", el("code", change.change)));
    body.replaceChildren(facts, el("h2", "Arguments"),
      rows.length ? el("dl", ...rows.flatMap(argument)) : el("p", "None."));
    if (change.result !== undefined && change.result !== null) {
      body.append(el("h2", "Result"), el("pre", lines(change.result).join("\n").slice(0, 4000)));
    }
    if (actions.firstChild) return;
    const known = root.dataset.page && /^[\w-]{1,64}$/.test(change.change);
    if (known && can.openLinks) actions.append(button("Open the owner's page", openPage));
    if (can.serverTools) actions.append(button("Refresh", () => card.refresh()));
  },
};
