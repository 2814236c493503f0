// The answers as one picture, with what a reader must know to make them again below them.
"use strict";

const TILE = 128;
const COLUMNS = 8;

async function loaded(address) {
  const image = new Image();
  image.src = address;
  await image.decode();
  return image;
}

// query and answers: {address, lines: [text, …]}; foot: [text, …]. Returns a PNG as a Blob.
async function stripOf(query, answers, foot) {
  const across = Math.min(COLUMNS, Math.max(2, answers.length));
  const [gap, line, margin] = [10, 15, 16];
  const step = [TILE + gap, TILE + 3 * line + gap];
  const down = Math.max(2, Math.ceil(answers.length / across));
  const left = margin + 2 * step[0] + gap;
  const canvas = document.createElement("canvas");
  const pen = canvas.getContext("2d");
  const width = Math.max(left + across * step[0] + margin, 760);
  pen.font = "11px sans-serif";
  const wrapped = foot.flatMap((text) => lines(pen, text, width - 2 * margin, 9));
  const height = margin + down * step[1] + wrapped.length * line + margin;
  [canvas.width, canvas.height] = [2 * width, 2 * height];
  pen.scale(2, 2);
  pen.fillStyle = "#fff";
  pen.fillRect(0, 0, width, height);
  await tile(pen, query, margin, margin, 2 * TILE + gap);
  for (const [place, answer] of answers.entries()) {
    await tile(pen, answer, left + (place % across) * step[0], margin + Math.floor(place / across) * step[1], TILE);
  }
  pen.font = "11px sans-serif";
  pen.fillStyle = "#333";
  wrapped.forEach((text, row) => pen.fillText(text, margin, margin + down * step[1] + (row + 0.7) * line));
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

async function tile(pen, { address, lines: texts }, x, y, side) {
  const image = await loaded(address);
  const shrink = side / Math.max(image.naturalWidth, image.naturalHeight);
  const [width, height] = [image.naturalWidth * shrink, image.naturalHeight * shrink];
  pen.drawImage(image, x + (side - width) / 2, y + (side - height) / 2, width, height);
  texts.forEach((text, row) => {
    pen.font = `${row ? "" : "bold "}11px sans-serif`;
    pen.fillStyle = "#000";
    pen.fillText(lines(pen, text, side, 1)[0], x, y + side + 13 + row * 15);
  });
}

// The text in lines that fit the width; of the last one allowed the end is left out.
function lines(pen, text, width, most) {
  const done = [""];
  for (const word of text.split(" ")) {
    const longer = done.at(-1) ? `${done.at(-1)} ${word}` : word;
    if (pen.measureText(longer).width <= width || !done.at(-1) || done.length === most) done.splice(-1, 1, longer);
    else done.push(word);
  }
  return done.map((one) => {
    if (pen.measureText(one).width <= width) return one;
    let end = one.length;
    while (end && pen.measureText(`${one.slice(0, end)}…`).width > width) end--;
    return `${one.slice(0, end)}…`;
  });
}
