// The page: one question (an image of the archive or of one's own), the choice of who may answer, and the answers.
// Whatever comes from the archive enters the page as text, never as HTML.
"use strict";

const find = (id) => document.getElementById(id);
const rows = ARCHIVE.rows; // id → {image_id, label, patient}
const ids = Object.keys(rows).map(Number);
const classes = ARCHIVE.classes; // [{label, count}, …]
const kindOf = new Map(classes.map(({ label }, number) => [label, number]));
const PAGE = 48; // images shown at once of all
const DIGITS = 3;

let question = null; // {id} or {file, picture}
let answer = null;
let asked = 0; // only the latest question is answered
let compared = 0; // the place of the answer that stands beside the question
let map;
const said = []; // what was said here, for a page without a server

function make(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

function trouble(message) {
  find("trouble").textContent = message;
  find("trouble").hidden = !message;
  if (message) find("trouble").scrollIntoView({ block: "nearest" });
}

// Does the work; if it fails, says so on the page and gives false.
const guarded = (work) => async (...given) => {
  try {
    return await work(...given);
  } catch (error) {
    trouble(error.message);
    return false;
  }
};

const percent = (share) => `${Math.round(100 * share)} %`;
const isOwn = () => question?.id !== undefined;
const title = () => (isOwn() ? rows[question.id].image_id : question.file.name);
const patientText = (patient) =>
  !patient || patient.toLowerCase().startsWith(ARCHIVE.kind) ? patient ?? "" : `${ARCHIVE.kind} ${patient}`;
const about = (id) => [rows[id].label, patientText(rows[id].patient), rows[id].image_id].filter(Boolean);
const ownPicture = async () => (isOwn() ? source.large(question.id) : question.picture);

function picture(id, alt) {
  const image = make("img", { alt, className: "thumbnail" });
  source.picture(id).then((found) => { image.src = found; }, (error) => trouble(error.message));
  return image;
}

function glyph(label) {
  const canvas = make("canvas", { width: 32, height: 32, className: "glyph" });
  canvas.setAttribute("aria-hidden", "true");
  symbol(canvas.getContext("2d"), kindOf.get(label), 16, 16, 11);
  return canvas;
}

// Who may answer -----------------------------------------------------------------------------------------------

const chosen = () => [...find("classes").querySelectorAll("input:checked")].map((box) => box.value);
const filtered = () => chosen().length < classes.length;

function choice() {
  const some = filtered() ? { classes: chosen() } : {};
  const apart = find("apart").checked ? 1 : 0;
  return isOwn() ? { ...some, apart } : { ...some, apart, patient: ownPatient() };
}

const ownPatient = () => (find("apart").checked ? find("patient").value.trim() : "");

function listClasses() {
  for (const { label } of classes) {
    const box = make("input", { type: "checkbox", value: label, checked: true });
    box.addEventListener("change", again);
    const count = make("span", { className: "count" });
    find("classes").append(make("li", {}, make("label", {}, box, glyph(label), make("span", { textContent: label }), count)));
  }
  find("legend").append(...classes.map(({ label }) => make("li", { className: "label" }, glyph(label), make("span", { textContent: label }))));
  countClasses();
}

function countClasses() {
  const shown = answer ? answer.ids.map((id) => rows[id].label) : [];
  const counts = find("classes").querySelectorAll(".count");
  classes.forEach(({ label, count }, number) => {
    counts[number].textContent = `${shown.filter((other) => other === label).length} / ${count}`;
  });
}

// Asking -------------------------------------------------------------------------------------------------------

const ask = guarded(async () => {
  if (!question) return;
  const mine = ++asked;
  trouble("");
  if (!chosen().length) throw new Error("No class may answer. Choose at least one class.");
  find("grid").setAttribute("aria-busy", "true");
  try {
    const came = isOwn() ? await source.ask(question.id, choice()) : await source.upload(question.file, choice());
    if (mine !== asked) return;
    if (came.state && came.state !== ARCHIVE.state) throw new Error("The archive has changed. Load this page again.");
    answer = came;
    for (const one of said) if (one.query_sha256 === came.sha256) came.opinions[one.number] = one.said;
    if (!isOwn()) question.picture = came.picture; // as the server read it: browsers show no TIFF
    showAll();
  } finally {
    if (mine === asked) find("grid").removeAttribute("aria-busy");
  }
});

function again() {
  map.dim(classes.map(({ label }) => label).filter((label) => !chosen().includes(label)));
  ask();
}

function askArchive(id) {
  if (location.hash === `#image=${id}`) return begin({ id });
  location.hash = `image=${id}`; // so that Back leads to the question before
}

function followAddress() {
  const id = Number(location.hash.match(/^#image=(\d+)$/)?.[1] ?? NaN);
  if (id in rows) begin({ id });
  else if (!Number.isNaN(id)) trouble(`The archive has no image with the number ${id}.`);
}

function askFile(file) {
  if (!file) return;
  if (!ARCHIVE.upload) return trouble(ARCHIVE.no_upload);
  if (file.size > ARCHIVE.upload) return trouble(`${file.name} is too large: an image may have ${Math.round(ARCHIVE.upload / 2 ** 20)} MB. Save a smaller one.`);
  if (location.hash) history.pushState(null, "", location.pathname);
  begin({ file });
}

async function begin(next) {
  const before = question;
  question = next;
  if ((await ask()) === false && question === next) question = before; // whose answers are still there
  if (innerWidth <= 860) find("said").scrollIntoView();
}

// Showing ------------------------------------------------------------------------------------------------------

async function showAll() {
  const { ids: found } = answer;
  find("start").hidden = true;
  find("strip").disabled = !found.length;
  find("shown").textContent = `${found.length} of ${ids.length} images`;
  find("grid").replaceChildren(...found.map(card));
  if (!found.length) find("grid").append(make("li", { className: "none", textContent: "No image may answer. Choose more classes." }));
  countClasses();
  showVotes();
  sayPatient();
  map.mark(isOwn() ? ARCHIVE.plane.at[question.id] : answer.at, found.slice(0, 5));
  await showQuestion();
}

async function showQuestion() {
  const [image, caption] = find("query").children;
  const lines = isOwn() ? about(question.id) : [title(), patientText(answer.left_out)].filter(Boolean);
  image.alt = isOwn() ? `Image of the archive, class ${rows[question.id].label}` : `Your image ${title()}`;
  caption.replaceChildren(...lines.map((text, row) => make(row ? "span" : "strong", { textContent: text })));
  find("query").hidden = false;
  image.src = await ownPicture();
}

function card(id, place) {
  const { label, patient, image_id } = rows[id];
  const rank = place + 1;
  const other = isOwn() && label !== rows[question.id].label;
  const image = make("button", { type: "button", className: "pick", title: `Ask with ${image_id}` }, picture(id, ""));
  image.setAttribute("aria-label", `Ask with number ${rank}: ${label}`);
  image.addEventListener("click", () => askArchive(id));
  const pair = make("button", { type: "button", textContent: "Compare" });
  pair.setAttribute("aria-label", `Compare number ${rank} with your image`);
  pair.addEventListener("click", () => compare(place));
  return make("li", { className: other ? "card other" : "card" },
    image,
    make("p", {}, make("b", { textContent: rank }), ` ${answer.distances[place].toFixed(DIGITS)}`, make("span", { className: "cross", textContent: other ? " × other class" : "" })),
    make("p", { className: "label" }, glyph(label), make("span", { textContent: label, title: label })),
    make("p", { className: "note", textContent: patientText(patient), title: image_id }),
    make("p", { className: "bar" }, pair, ...["yes", "no"].map((word) => opinion(id, place, word))));
}

function opinion(id, place, word) {
  const button = make("button", { type: "button", textContent: word === "yes" ? "Yes" : "No" });
  button.setAttribute("aria-label", `Number ${place + 1} is ${word === "yes" ? "" : "not "}like your image`);
  button.setAttribute("aria-pressed", answer.opinions[id] === word);
  button.addEventListener("click", guarded(async () => {
    const one = { query: title(), query_sha256: answer.sha256, answer: id, rank: place + 1,
      distance: answer.distances[place], left_out: answer.left_out, said: word };
    await source.say(one);
    said.push({ time: new Date().toISOString(), ...one, number: id, answer: rows[id].image_id, label: rows[id].label });
    answer.opinions[id] = word;
    for (const other of button.parentElement.querySelectorAll("[aria-pressed]")) other.setAttribute("aria-pressed", other === button);
    find("kept").textContent = ARCHIVE.opinions ? `Kept in ${ARCHIVE.opinions}` : `${said.length} said: save them before you leave.`;
  }));
  return button;
}

function sayPatient() {
  const missing = question?.file && ownPatient() && !answer.left_out;
  find("patient-note").textContent = missing
    ? `The archive has no image of ${patientText(ownPatient())}: none was left out.`
    : `Images of the same ${ARCHIVE.kind} are then left out.`;
}

function showVotes() {
  const lines = Object.entries(answer.votes).filter(([k]) => k > 1).map(([k, [label, share]]) => {
    const measured = ARCHIVE.accuracy[k];
    const right = measured === undefined || measured === null ? "not measured on this archive" : `here right in ${percent(measured)} of cases`;
    return make("p", {}, make("strong", { textContent: label }), ` say ${Math.round(share * k)} of ${k} `,
      make("span", { className: "note", textContent: filtered() || answer.unlike ? "" : `(${right})` }));
  });
  if (answer.unlike) lines.unshift(make("p", { className: "unlike", textContent: `Unlike anything here: ${answer.unlike}.` }));
  if (!lines.length) lines.push(make("p", { className: "note", textContent: "Too few answers for a vote." }));
  const known = Object.keys(ARCHIVE.accuracy).length ? "Measured on this archive: " : "How often votes are right was ";
  const how = filtered() ? "You left out classes: how often votes are then right was not measured."
    : answer.unlike ? "How often votes are right was measured on images of this archive, and does not hold for this one."
    : `${known}${ARCHIVE.measured}.`;
  lines.push(make("p", { className: "note", textContent: how }));
  if (answer.learnt) lines.push(make("p", { className: "note", textContent: ARCHIVE.learnt }));
  find("votes").replaceChildren(...lines);
}

function listImages(more = 0) {
  const label = find("browsed").value;
  const some = ids.filter((id) => !label || rows[id].label === label);
  const upTo = Math.min(some.length, more + PAGE);
  const made = some.slice(more, upTo).map((id) => {
    const button = make("button", { type: "button", className: "pick", title: about(id).join(", ") }, picture(id, ""));
    button.setAttribute("aria-label", `Ask with ${about(id).join(", ")}`);
    button.addEventListener("click", () => { askArchive(id); find("nearest").focus(); });
    return make("li", {}, button, make("p", { className: "label", textContent: rows[id].label }));
  });
  if (more) find("images").append(...made);
  else find("images").replaceChildren(...made);
  find("browsing").textContent = `${upTo} of ${some.length} shown`;
  find("more").hidden = upTo === some.length;
}

// Side by side -------------------------------------------------------------------------------------------------

const compare = guarded(async (place) => {
  compared = Math.min(answer.ids.length - 1, Math.max(0, place));
  const id = answer.ids[compared];
  const [left, right] = find("compare").querySelectorAll("figure");
  fill(left, await ownPicture(), isOwn() ? about(question.id) : [title()]);
  fill(right, await source.large(id), [`${compared + 1}: distance ${answer.distances[compared].toFixed(DIGITS)}`, ...about(id)]);
  find("before").disabled = compared === 0;
  find("after").disabled = compared === answer.ids.length - 1;
  if (!find("compare").open) find("compare").showModal();
});

function fill(figure, address, lines) {
  const [image, caption] = figure.children;
  Object.assign(image, { src: address, alt: lines.join(", ") });
  caption.replaceChildren(...lines.map((text) => make("span", { textContent: text })));
}

// Saving -------------------------------------------------------------------------------------------------------

function save(blob, name) {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

const saveStrip = guarded(async () => {
  const answers = answer.ids.map(async (id, place) => ({
    address: await source.picture(id),
    lines: [`${place + 1}   ${answer.distances[place].toFixed(DIGITS)}`, rows[id].label, patientText(rows[id].patient)],
  }));
  const votes = [...find("votes").children].map((line) => line.textContent);
  const foot = [...votes, `Archive ${ARCHIVE.name}: ${ARCHIVE.about}`,
    `Answers: ${find("apart").checked ? `same ${ARCHIVE.kind} left out` : `same ${ARCHIVE.kind} may answer`}; classes: ${filtered() ? chosen().join(", ") : "all"}.`,
    `Asked ${new Date().toISOString().slice(0, 16).replace("T", " ")} UTC. Image ${title()}, SHA-256 ${answer.sha256}. ${ARCHIVE.version}`];
  const query = { address: await ownPicture(), lines: isOwn() ? about(question.id) : [title()] };
  save(await stripOf(query, await Promise.all(answers), foot), "nearest.png");
});

function saveOpinions() {
  const names = ["time", "query", "query_sha256", "answer", "label", "rank", "distance", "left_out", "said"];
  const cell = (value) => `"${String(value ?? "").replaceAll('"', '""')}"`;
  const text = [names.join(","), ...said.map((one) => names.map((name) => cell(one[name])).join(","))].join("\r\n");
  save(new Blob([`${text}\r\n`], { type: "text/csv" }), "yes-and-no.csv");
}

// Beginning ----------------------------------------------------------------------------------------------------

function start() {
  document.title = `${ARCHIVE.name}: image archive`;
  find("name").textContent = ARCHIVE.name;
  find("about").textContent = ARCHIVE.about;
  find("provenance").textContent = ARCHIVE.version;
  find("map-note").textContent = ARCHIVE.plane.note;
  find("upload").hidden = !ARCHIVE.upload;
  find("no-upload").textContent = ARCHIVE.no_upload;
  find("no-upload").hidden = Boolean(ARCHIVE.upload);
  find("opinions").hidden = Boolean(ARCHIVE.opinions);
  for (const kind of document.querySelectorAll(".kind")) kind.textContent = ARCHIVE.kind;
  const unknown = !ARCHIVE.patients.length;
  if (unknown) {
    Object.assign(find("apart"), { checked: false, disabled: true });
    find("patient").disabled = true;
  }
  find("apart-note").textContent = unknown
    ? "This archive does not say which images are of one patient."
    : ARCHIVE.answers ? `This page keeps the nearest of each image: choosing classes finds no others.` : "";
  find("apart-note").hidden = !find("apart-note").textContent;
  sayPatient();
  find("patients").append(...ARCHIVE.patients.map((patient) => make("option", { value: patient })));
  find("browsed").append(make("option", { value: "", textContent: "all" }), ...classes.map(({ label, count }) => make("option", { value: label, textContent: `${label} (${count})` })));
  const points = ids.map((id) => ({ id, at: ARCHIVE.plane.at[id], label: rows[id].label, kind: kindOf.get(rows[id].label) }));
  map = diskMap(find("disk"), points, ARCHIVE.plane.unit, { ask: askArchive, point: pointAt });
  find("choice").open = innerWidth > 860;
  listClasses();
  listImages();
  listen();
  followAddress();
}

function pointAt(id) {
  const figure = find("pointed");
  const [image, caption] = figure.children;
  image.hidden = id === null;
  caption.textContent = id === null ? "Point at an image of the map." : about(id).join(", ");
  if (id !== null) source.picture(id).then((found) => { image.src = found; }, (error) => trouble(error.message));
}

function listen() {
  window.addEventListener("hashchange", followAddress);
  find("file").addEventListener("change", (event) => { askFile(event.target.files[0]); event.target.value = ""; });
  find("patient").addEventListener("change", () => question?.file && ask());
  find("apart").addEventListener("change", ask);
  find("every").addEventListener("click", () => {
    for (const box of find("classes").querySelectorAll("input")) box.checked = true;
    again();
  });
  find("browsed").addEventListener("change", () => listImages());
  find("more").addEventListener("click", () => listImages(find("images").children.length));
  find("strip").addEventListener("click", saveStrip);
  find("opinions").addEventListener("click", saveOpinions);
  for (const button of document.querySelectorAll("[data-key]")) button.addEventListener("click", () => map.press(button.dataset.key));
  find("before").addEventListener("click", () => compare(compared - 1));
  find("after").addEventListener("click", () => compare(compared + 1));
  find("close").addEventListener("click", () => find("compare").close());
  find("compare").addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft") compare(compared - 1);
    if (event.key === "ArrowRight") compare(compared + 1);
  });
  document.addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("dropping"); });
  document.addEventListener("dragleave", () => document.body.classList.remove("dropping"));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("dropping");
    askFile(event.dataTransfer.files[0]);
  });
}

start();
