// Where answers come from: the server of `make app`, or the files that `make export` wrote beside this page.
// Both offer ask(id, {apart, classes}), upload(file, {patient, classes}), picture(id), large(id) and say(opinion).
"use strict";

const live = {
  ask: (id, choice) => answered(`ask/${id}?${asText(choice)}`),
  upload: (file, choice) => answered(`ask?${asText(choice)}`, { method: "POST", body: file }),
  picture: async (id) => `pictures/${id}`,
  large: async (id) => `large/${id}`,
  say: (opinion) =>
    answered("opinions", {
      method: "POST",
      body: JSON.stringify(opinion),
      headers: { "Content-Type": "application/json" },
    }),
};

function asText({ classes, ...rest }) {
  const text = new URLSearchParams(rest);
  for (const name of classes ?? []) text.append("class", name);
  return text;
}

async function answered(address, options) {
  let response;
  try {
    response = await fetch(address, options);
  } catch {
    throw new Error("The server does not answer. Does `make app` still run?");
  }
  const content = await response.json().catch(() => ({ message: `The server answered ${response.status}.` }));
  if (!response.ok) throw new Error(content.message);
  return content;
}

const pictures = new Map();
const waiting = new Map();
// Files opened by a double click may not be fetched, but scripts may be loaded: each calls this with one picture.
function receive(id, address) {
  pictures.set(id, address);
}

// What most of the first 3 and 5 are; of classes with as many the one that comes first.
function votes(ids) {
  const labels = ids.map((id) => ARCHIVE.rows[id].label);
  return Object.fromEntries([3, 5].filter((k) => k <= labels.length).map((k) => {
    const counts = new Map();
    for (const label of labels.slice(0, k)) counts.set(label, (counts.get(label) ?? 0) + 1);
    const most = Math.max(...counts.values());
    return [k, [[...counts].find(([, count]) => count === most)[0], most / k]];
  }));
}

const kept = {
  async ask(id, { apart, classes }) {
    const answer = ARCHIVE.answers[id][apart ? 0 : 1];
    const may = answer.ids.map((other) => !classes || classes.includes(ARCHIVE.rows[other].label));
    const chosen = (list) => list.filter((_, place) => may[place]);
    const ids = chosen(answer.ids);
    return { ...answer, ids, distances: chosen(answer.distances), votes: classes ? votes(ids) : answer.votes, opinions: {} };
  },
  picture(id) {
    if (!waiting.has(id)) {
      waiting.set(id, new Promise((done, failed) => {
        const script = document.createElement("script");
        script.src = `pictures/${id}.js`;
        script.onload = () => done(pictures.get(id));
        script.onerror = () => failed(new Error(`The file pictures/${id}.js is missing beside this page.`));
        document.head.append(script);
      }));
    }
    return waiting.get(id);
  },
  large: (id) => kept.picture(id),
  say: async () => {},
};

const source = ARCHIVE.answers ? kept : live;
