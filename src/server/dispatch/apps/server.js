// The card of the server: each result of its tools is a part of it.
const TOOLS = ["container_list", "server_metrics", "changes_since"];
const parts = {};
let shown = 0;
const bytesOf = (bytes) => (bytes < 1e9 ? `${Math.round(bytes / 1e6)} MB` : `${(bytes / 1e9).toFixed(1)} GB`);
const percent = (number) => `${Math.round(number)} %`;
const table = (heads, rows) => el("table", el("tr", ...heads.map((head) => {
  const cell = el("th", head);
  cell.scope = "col";
  return cell;
})), ...rows.map((row) => el("tr", ...row.map((cell) => el("td", cell)))));
const containers = (all) => {
  const rows = all.map((one) => {
    const state = el("span", one.state);
    if (one.state === "running") state.className = "good";
    return [name(one.name), state, one.memory_bytes === undefined ? "" : bytesOf(one.memory_bytes),
      (one.addresses ?? []).slice(0, 2).join(", ")];
  });
  return rows.length ? table(["Name", "State", "Memory", "Addresses"], rows) : el("p", "None.");
};
const load = ({ cpu_percent: cpu, load: average, memory, mounts }) => {
  const rows = [["CPU", percent(cpu), `load ${average.join(", ")}`]];
  const used = memory.total_bytes - memory.available_bytes;
  rows.push(["Memory", percent((100 * used) / memory.total_bytes), `${bytesOf(used)} of ${bytesOf(memory.total_bytes)}`]);
  for (const mount of (mounts ?? []).slice(0, 8)) {
    const free = `${bytesOf(mount.available_bytes)} free`;
    rows.push([name(mount.path), percent(mount.used_percent), free]);
  }
  return table(["What", "Used", "Details"], rows);
};
const changes = ({ summary, revisions, left_out: left }) => {
  const all = summary ?? (revisions ?? []).map((one) => `${one.at ?? one.id}: ${one.actor ?? "unknown"}`);
  const most = all.slice(0, 40);
  const more = all.length - most.length + (left ?? 0);
  const items = most.map((line) => el("li", line.length > 300 ? `${line.slice(0, 300)}…` : line));
  if (more > 0) items.push(el("li", `${more} more`));
  return items.length ? el("ul", ...items) : el("p", "Nothing.");
};
const add = (data) => {
  if (Array.isArray(data.containers)) parts.containers = data.containers;
  else if (data.memory && Array.isArray(data.load)) parts.load = data;
  else if (Array.isArray(data.summary ?? data.revisions)) parts.changes = data;
  else return false;
  shown = Date.now();
  return true;
};
const card = {
  input() {},
  result({ data, text, failed }) {
    if (!add(data)) say(text || "No data.", failed ? "bad" : "");
    card.draw();
  },
  async refresh() {
    say("Loading.");
    const found = await Promise.all(TOOLS.map((tool) => call(tool)));
    found.forEach((data) => data && add(data));
    card.draw();
    const missing = TOOLS.filter((_, index) => !found[index]);
    if (missing.length) say(`Not available: ${missing.join(", ")}.`, "bad");
  },
  draw() {
    if (!shown) return;
    say(`As of ${time(shown)}`);
    body.replaceChildren();
    if (parts.containers) body.append(el("h2", "Containers"), containers(parts.containers));
    if (parts.load) body.append(el("h2", "Load"), load(parts.load));
    if (parts.changes) body.append(el("h2", "What changed"), changes(parts.changes));
    if (can.serverTools && !actions.firstChild) actions.append(button("Show everything now", () => card.refresh()));
  },
};
