"use strict";
// Everything from the data goes into the page as text, never as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";
const LABELS = 270, TOP = 34, LANE = 24, EDGE = 14;
const byId = (id) => document.getElementById(id);
const view = { from: 0, to: 1, scale: "time", filter: "", chosen: null };

function make(name, attributes = {}, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function put(parent, name, text, cls) {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  if (cls) element.className = cls;
  parent.append(element);
  return element;
}

// --- positions

data.writes.forEach((write, number) => { write.order = number; });
for (const mark of data.marks) {
  const after = data.writes.filter((write) => write.rv <= mark.after).length;
  mark.order = after - 0.5;
}

function position(one) { return view.scale === "time" ? one.time : one.order; }

function extent() {
  const all = [...data.writes, ...data.marks].map(position);
  let low = Infinity, high = -Infinity;
  for (const each of all) { low = Math.min(low, each); high = Math.max(high, each); }
  if (!all.length) return [0, 1];
  const room = Math.max((high - low) * 0.02, view.scale === "time" ? 5 : 0.7);
  return [low - room, high + room];
}

function fit() { [view.from, view.to] = extent(); draw(); }

function zoom(factor, at = 0.5) {
  const [low, high] = extent();
  const middle = view.from + (view.to - view.from) * at;
  const least = view.scale === "time" ? 1 : 2;
  const width = Math.min(Math.max((view.to - view.from) * factor, least), high - low);
  view.from = Math.min(Math.max(middle - width * at, low), high - width);
  view.to = view.from + width;
  draw();
}

function pan(part) {
  const [low, high] = extent();
  const width = view.to - view.from;
  view.from = Math.min(Math.max(view.from + width * part, low), high - width);
  view.to = view.from + width;
  draw();
}

// --- lanes

function lanesOf(writes) {
  const lanes = new Map();
  for (const write of writes) {
    if (!lanes.has(write.lane)) lanes.set(write.lane, { name: write.lane, writes: [] });
    lanes.get(write.lane).writes.push(write);
  }
  return [...lanes.values()];
}

function shownWrites() {
  const wanted = view.filter.toLowerCase();
  return data.writes.filter((write) =>
    `${write.lane} ${write.author} ${write.title}`.toLowerCase().includes(wanted));
}

function draw() {
  const writes = shownWrites(), lanes = lanesOf(writes), host = byId("lanes");
  const width = Math.max(host.clientWidth, LABELS + 200);
  const height = TOP + lanes.length * LANE + EDGE;
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, height });
  const room = width - LABELS - EDGE;
  const x = (place) => LABELS + (place - view.from) / (view.to - view.from) * room;
  const inside = (place) => place >= view.from && place <= view.to;
  lanes.forEach((lane, number) => svg.append(drawLane(lane, number, x, inside, width)));
  drawTicks(svg, x, height, Math.max(Math.floor(room / 130), 1));
  for (const mark of data.marks) if (inside(position(mark))) svg.append(drawMark(mark, x, height));
  const focused = document.activeElement?.dataset?.rv;
  host.replaceChildren(svg);
  if (focused) host.querySelector(`[data-rv="${Number(focused)}"]`)?.focus({ preventScroll: true });
  const left = data.omitted ? `, ${data.omitted} earlier or routine ones are left out` : "";
  byId("count").textContent = `${writes.length} writes of ${lanes.length} objects${left}`;
}

function drawLane(lane, number, x, inside, width) {
  const y = TOP + number * LANE + LANE / 2;
  const group = make("g", { class: number % 2 ? "lane odd" : "lane" });
  group.append(make("rect", { class: "stripe", x: 0, y: y - LANE / 2, width, height: LANE }));
  const short = lane.name.length > 40 ? `${lane.name.slice(0, 39)}…` : lane.name;
  const label = make("text", { x: 10, y: y + 4 }, short);
  label.append(make("title", {}, lane.name));
  group.append(label);
  drawLives(group, lane.writes.filter((write) => !write.told), x, y);
  for (const write of lane.writes) {
    if (inside(position(write))) group.append(drawWrite(write, x(position(write)), y));
  }
  return group;
}

function drawLives(group, writes, x, y) {
  let since = writes.length && writes[0].event !== "ADDED" ? view.from : null;
  const line = (from, to) => {
    const start = Math.max(from, view.from), end = Math.min(to, view.to);
    if (end > start) group.append(make("line", { class: "life", x1: x(start), x2: x(end), y1: y, y2: y }));
  };
  for (const write of writes) {
    if (write.event === "ADDED") since = position(write);
    if (write.event === "DELETED" && since !== null) { line(since, position(write)); since = null; }
  }
  if (since !== null) line(since, view.to);
}

function drawWrite(write, x, y) {
  const kind = write.told ? "event" : write.event.toLowerCase();
  const own = {
    class: `write ${kind}${write.rv === view.chosen ? " chosen" : ""}`,
    tabindex: 0, role: "button", "data-rv": write.rv, "aria-label": `${write.title} by ${write.author}`,
  };
  const shape = write.told
    ? make("path", { ...own, d: `M${x} ${y - 7}l6 7l-6 7l-6 -7z` })
    : make("circle", { ...own, cx: x, cy: y, r: 6 });
  shape.append(make("title", {}, `${write.clock}  ${write.title}\nby ${write.author}`));
  return shape;
}

function drawMark(mark, x, height) {
  const group = make("g", { class: "mark" }), at = x(position(mark));
  group.append(make("line", { x1: at, x2: at, y1: 16, y2: height }));
  const late = at > x(view.from + (view.to - view.from) * 0.6);
  const side = late ? { x: at - 3, "text-anchor": "end" } : { x: at + 3 };
  group.append(make("text", { ...side, y: 28 }, `${mark.kind}: ${mark.text}`.slice(0, 60)));
  return group;
}

function drawTicks(svg, x, height, count) {
  const group = make("g", { class: "tick" });
  for (let number = 0; number <= count; number++) {
    const place = view.from + (view.to - view.from) * number / count, at = x(place);
    group.append(make("line", { x1: at, x2: at, y1: 14, y2: height, "stroke-opacity": 0.5 }));
    const anchor = number === count ? "end" : number ? "middle" : "start";
    group.append(make("text", { x: at, y: 11, "text-anchor": anchor }, tickText(place)));
  }
  svg.prepend(group);
}

function tickText(place) {
  if (view.scale === "order") return place < 0 ? "" : `write ${Math.round(place) + 1}`;
  const date = new Date(place), long = view.to - view.from > 36e5 * 12;
  return long ? date.toISOString().slice(5, 16).replace("T", " ") : date.toISOString().slice(11, 23);
}

// --- one write

function choose(rv) {
  view.chosen = rv;
  const write = data.writes.find((each) => each.rv === rv);
  const detail = byId("detail");
  detail.replaceChildren();
  put(detail, "h2", write.title);
  const facts = put(detail, "dl");
  const rows = [["by", write.author], ["at", write.clock], ["version", write.rv], ["namespace", write.namespace], ["manager", write.manager]];
  for (const [name, value] of rows) {
    if (value === "") continue;
    put(facts, "dt", name);
    put(facts, "dd", String(value));
  }
  if (write.told) put(detail, "p", write.told);
  for (const [path, before, after] of write.changes) {
    const change = put(detail, "div", undefined, "change");
    put(change, "div", path, "path");
    if (before !== null) put(change, "div", before, "old");
    if (after !== null) put(change, "div", after, "new");
  }
  if (write.more) put(detail, "p", `and ${write.more} more changes`, "key");
  draw();
}

function step(by) {
  const writes = shownWrites();
  if (!writes.length) return;
  const now = writes.findIndex((write) => write.rv === view.chosen);
  const next = writes[Math.min(Math.max(now + by, 0), writes.length - 1)];
  const place = position(next);
  if (place < view.from || place > view.to) {
    const half = (view.to - view.from) / 2;
    view.from = place - half; view.to = place + half;
  }
  choose(next.rv);
  byId("lanes").querySelector(`[data-rv="${next.rv}"]`)?.scrollIntoView({ block: "nearest" });
}

// --- what the reader does

function listen() {
  const lanes = byId("lanes");
  lanes.addEventListener("click", (event) => {
    const target = event.target.closest("[data-rv]");
    if (target) choose(Number(target.dataset.rv));
  });
  lanes.addEventListener("wheel", (event) => {
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      pan(Math.sign(event.deltaX || event.deltaY) * 0.1);
    } else {
      const box = lanes.getBoundingClientRect();
      const at = (event.clientX - box.left - LABELS) / (box.width - LABELS - EDGE);
      if (at < 0) return;
      zoom(event.deltaY > 0 ? 1.25 : 0.8, Math.min(at, 1));
    }
    event.preventDefault();
  }, { passive: false });
  let held = null;
  lanes.addEventListener("pointerdown", (event) => { held = event.clientX; });
  window.addEventListener("pointerup", () => { held = null; });
  window.addEventListener("pointermove", (event) => {
    if (held === null || Math.abs(event.clientX - held) < 4) return;
    pan((held - event.clientX) / (lanes.clientWidth - LABELS));
    held = event.clientX;
  });
  window.addEventListener("resize", draw);
  window.addEventListener("keydown", (event) => {
    if (event.target.matches("input, select")) return;
    const keys = { "+": () => zoom(0.5), "-": () => zoom(2), "0": fit, ArrowLeft: () => step(-1), ArrowRight: () => step(1) };
    if (keys[event.key]) { keys[event.key](); event.preventDefault(); }
    if ((event.key === "Enter" || event.key === " ") && event.target.dataset?.rv) choose(Number(event.target.dataset.rv));
  });
  byId("in").addEventListener("click", () => zoom(0.5));
  byId("out").addEventListener("click", () => zoom(2));
  byId("fit").addEventListener("click", fit);
  byId("scale").addEventListener("change", (event) => { view.scale = event.target.value; fit(); });
  byId("filter").addEventListener("input", (event) => { view.filter = event.target.value; draw(); });
}

function show() {
  const title = byId("title");
  put(title, "span", `${data.outcome} `, data.outcome === "failed" ? "failed" : "passed");
  title.append(data.title);
  document.title = `${data.outcome}: ${data.title}`;
  if (data.failure) { byId("why").hidden = false; byId("failure").textContent = data.failure; }
  listen();
  fit();
}

show();
