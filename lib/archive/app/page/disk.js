// A map in the Poincaré disk, moved and enlarged by Möbius translations. A complex number is a pair [x, y].
"use strict";

const COLOURS = ["#0173b2", "#b56a00", "#02795a", "#b8420a", "#a0418f", "#7a5230", "#333333", "#2b6ea8"];
const SHAPES = ["circle", "square", "up", "diamond", "down", "plus", "ring", "frame", "hollow up", "hollow diamond"];

const times = ([a, b], [c, d]) => [a * c - b * d, a * d + b * c];
const plus = ([a, b], [c, d]) => [a + c, b + d];
const conj = ([a, b]) => [a, -b];
const over = (z, [c, d]) => times(z, [c, -d]).map((part) => part / (c * c + d * d));
const size = ([a, b]) => Math.hypot(a, b);

// The isometry z → (αz + β) / (β̄z + ᾱ) as the pair [α, β] with |α|² − |β|² = 1.
const still = [[1, 0], [0, 0]];
const apply = ([a, b], z) => over(plus(times(a, z), b), plus(times(conj(b), z), conj(a)));
const after = ([a, b], [c, d]) =>
  normal([plus(times(a, c), times(b, conj(d))), plus(times(a, d), times(b, conj(c)))]);
const normal = ([a, b]) => {
  const root = Math.sqrt(size(a) ** 2 - size(b) ** 2);
  return [a.map((part) => part / root), b.map((part) => part / root)];
};
const inverse = ([a, b]) => [conj(a), b.map((part) => -part)];
const fromCentre = (point) => normal([[1, 0], point]); // takes the centre to the point
const moving = (from, to) => after(fromCentre(to), inverse(fromCentre(from)));
const inside = (point, most = 0.98) => (size(point) > most ? point.map((part) => (part * most) / size(point)) : point);

// The path of one symbol: shape and colour say the class, so that grey print does as well.
function symbol(pen, number, x, y, r) {
  const shape = SHAPES[number % SHAPES.length];
  pen.fillStyle = pen.strokeStyle = COLOURS[number % COLOURS.length];
  pen.lineWidth = Math.max(1, r / 3);
  pen.beginPath();
  if (shape === "circle" || shape === "ring") pen.arc(x, y, r, 0, 2 * Math.PI);
  else if (shape === "square" || shape === "frame") pen.rect(x - 0.85 * r, y - 0.85 * r, 1.7 * r, 1.7 * r);
  else if (shape === "plus") {
    pen.rect(x - r, y - r / 3, 2 * r, r / 1.5);
    pen.rect(x - r / 3, y - r, r / 1.5, 2 * r);
  } else {
    const corners = { up: [[0, -1.1], [1, 0.8], [-1, 0.8]], down: [[0, 1.1], [1, -0.8], [-1, -0.8]] };
    const drawn = corners[shape.replace("hollow ", "")] ?? [[0, -1.2], [1, 0], [0, 1.2], [-1, 0]];
    for (const [dx, dy] of drawn) pen.lineTo(x + dx * r, y + dy * r);
    pen.closePath();
  }
  if (/ring|frame|hollow/.test(shape)) pen.stroke();
  else pen.fill();
}

// points: [{id, at: [x, y] in the unit disk, kind: number of the class}]; point(id) when one is pointed at, ask(id).
// unit: the distance in the ball for each 1 in the disk; null: no circles are drawn.
function diskMap(canvas, points, unit, { point, ask }) {
  const widest = Math.max(...points.map(({ at }) => size(at)), 0.1);
  const fitting = Math.max(1, 0.9 / widest); // all points are seen, however near the centre they are
  const state = { view: still, zoom: fitting, marked: new Map(), query: null, dimmed: new Set(), pointed: null };
  let seen = []; // where the points are on the screen
  let grip = null; // where the mouse took hold: [place on the canvas, whether it was moved]
  let waiting = false;

  const scale = () => 0.47 * Math.min(canvas.clientWidth, canvas.clientHeight) * state.zoom;
  const toScreen = (w) => [canvas.clientWidth / 2 + w[0] * scale(), canvas.clientHeight / 2 - w[1] * scale()];
  const toDisk = ([x, y]) => [(x - canvas.clientWidth / 2) / scale(), (canvas.clientHeight / 2 - y) / scale()];
  const onCanvas = (event) => [event.offsetX, event.offsetY];
  const move = (from, to) => { state.view = after(moving(inside(from), inside(to)), state.view); draw(); };

  // What lies under the place stays there: the disk grows, and a translation brings the place back to the mouse.
  function enlarge(factor, place) {
    const before = toDisk(place);
    state.zoom = Math.min(100, Math.max(1, state.zoom * factor));
    move(before, toDisk(place));
  }

  function home(zoom) { Object.assign(state, { view: still, zoom }); draw(); }

  function nearest([x, y], within) {
    let best = null;
    for (const { id, place } of seen) {
      const gap = Math.hypot(place[0] - x, place[1] - y);
      if (gap < within) [best, within] = [id, gap];
    }
    return best;
  }

  function show(id) {
    if (id === state.pointed) return;
    state.pointed = id;
    point(id);
    draw();
  }

  function draw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; paint(); });
  }

  // Around the archive's origin, at this distance 2 artanh |z|; seen from elsewhere it is a circle all the same.
  function circle(pen, radius) {
    const centre = apply(state.view, [0, 0]);
    const along = size(centre) > 1e-9 ? over(centre, [size(centre), 0]) : [1, 0];
    const [near, far] = [-radius, radius].map((way) => Math.tanh(Math.atanh(size(centre)) + way / 2));
    pen.beginPath();
    pen.arc(...toScreen(along.map((part) => (part * (near + far)) / 2)), ((far - near) / 2) * scale(), 0, 2 * Math.PI);
    pen.stroke();
    label(pen, String(Number((radius * unit).toPrecision(3))), toScreen(apply(state.view, [0, -Math.tanh(radius / 2)])));
  }

  // As many as can be told apart: near the origin a distance d is d/2 of the disk.
  function circles(pen) {
    const step = [0.02, 0.05, 0.1, 0.2, 0.5].find((one) => (one / 2) * scale() > 60) ?? 1;
    [pen.font, pen.textAlign, pen.textBaseline] = ["11px sans-serif", "center", "middle"];
    for (let number = 1; number <= 8; number++) {
      [pen.strokeStyle, pen.lineWidth] = ["#cfcfcf", 1];
      circle(pen, number * step);
    }
  }

  function paint() {
    const dots = window.devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (canvas.width !== Math.round(width * dots)) canvas.width = Math.round(width * dots);
    if (canvas.height !== Math.round(height * dots)) canvas.height = Math.round(height * dots);
    const pen = canvas.getContext("2d");
    pen.setTransform(dots, 0, 0, dots, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.beginPath();
    pen.arc(...toScreen([0, 0]), scale(), 0, 2 * Math.PI);
    pen.fillStyle = "#fafafa";
    pen.fill();
    [pen.strokeStyle, pen.lineWidth] = ["#555", 1.5];
    pen.stroke();
    if (unit) circles(pen);
    seen = points.map(({ id, at, kind, label }) => ({ id, kind, label, w: apply(state.view, at) }));
    for (const one of seen) {
      one.place = toScreen(one.w);
      one.r = (1.8 + 3.2 * (1 - size(one.w) ** 2)) * Math.sqrt(state.zoom); // smaller toward the rim, as lengths are
      pen.globalAlpha = state.dimmed.has(one.label) ? 0.12 : 0.85;
      symbol(pen, one.kind, ...one.place, Math.min(one.r, 9));
    }
    pen.globalAlpha = 1;
    [pen.font, pen.textAlign, pen.textBaseline] = ["bold 12px sans-serif", "center", "middle"];
    const told = []; // where a text stands: the nearer answer is told, one that would cover it is not
    const tell = (text, place) => {
      if (told.every(([x, y]) => Math.abs(x - place[0]) > 16 || Math.abs(y - place[1]) > 13)) {
        told.push(place);
        label(pen, text, place);
      }
    };
    const places = new Map(seen.map((one) => [one.id, one]));
    for (const id of [...state.marked.keys(), state.pointed]) {
      const one = places.get(id);
      if (one) ring(pen, one.place, Math.min(one.r, 9) + 2.5, id === state.pointed ? 2.5 : 1.2);
    }
    if (state.query) {
      const place = toScreen(apply(state.view, state.query));
      ring(pen, place, 13, 3);
      tell("your image", [place[0], place[1] + 23]);
    }
    for (const [id, rank] of state.marked) {
      const one = places.get(id);
      if (one) tell(String(rank), [one.place[0] + 14, one.place[1] - 10]);
    }
    if (document.activeElement === canvas) {
      pen.fillStyle = "#000";
      pen.fillRect(width / 2 - 8, height / 2 - 0.5, 16, 1);
      pen.fillRect(width / 2 - 0.5, height / 2 - 8, 1, 16);
    }
  }

  function ring(pen, place, r, thick) {
    pen.beginPath();
    pen.arc(...place, r, 0, 2 * Math.PI);
    [pen.strokeStyle, pen.lineWidth] = ["#000", thick];
    pen.stroke();
  }

  function label(pen, text, place) {
    [pen.lineWidth, pen.strokeStyle, pen.fillStyle] = [3, "#fff", "#000"];
    pen.strokeText(text, ...place);
    pen.fillText(text, ...place);
  }

  const middle = () => [canvas.clientWidth / 2, canvas.clientHeight / 2];
  const step = (x, y) => move([0, 0], [(0.15 * x) / state.zoom, (0.15 * y) / state.zoom]);
  const KEYS = {
    ArrowLeft: () => step(1, 0),
    ArrowRight: () => step(-1, 0),
    ArrowUp: () => step(0, -1),
    ArrowDown: () => step(0, 1),
    "+": () => enlarge(1.3, middle()),
    "=": () => enlarge(1.3, middle()),
    "-": () => enlarge(1 / 1.3, middle()),
    0: () => home(fitting),
    9: () => home(1),
    Enter: () => state.pointed !== null && ask(state.pointed),
  };
  function press(key) {
    if (!(key in KEYS)) return false;
    KEYS[key]();
    if (key !== "Enter") { paint(); show(nearest(middle(), Infinity)); }
    return true;
  }

  canvas.addEventListener("keydown", (event) => {
    if (!event.ctrlKey && !event.metaKey && !event.altKey && press(event.key)) event.preventDefault();
  });
  canvas.addEventListener("focus", draw);
  canvas.addEventListener("blur", draw);
  canvas.addEventListener("pointerdown", (event) => {
    grip = { place: onCanvas(event), moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const place = onCanvas(event);
    if (!grip) return show(nearest(place, 14));
    if (!grip.moved && Math.hypot(place[0] - grip.place[0], place[1] - grip.place[1]) < 4) return;
    move(toDisk(grip.place), toDisk(place));
    grip = { place, moved: true };
  });
  canvas.addEventListener("pointerup", (event) => {
    const found = grip && !grip.moved ? nearest(onCanvas(event), 14) : null;
    grip = null;
    if (found !== null) ask(found);
  });
  canvas.addEventListener("pointercancel", () => { grip = null; });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    enlarge(Math.exp(-Math.sign(event.deltaY) * Math.min(0.3, Math.abs(event.deltaY) / 400)), onCanvas(event));
  }, { passive: false });
  new ResizeObserver(draw).observe(canvas);

  return {
    press,
    mark(query, ids) { Object.assign(state, { query, marked: new Map(ids.map((id, place) => [id, place + 1])) }); draw(); },
    dim(labels) { state.dimmed = new Set(labels); draw(); },
    where: (id) => seen.find((one) => one.id === id)?.place,
  };
}
