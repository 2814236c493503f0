// A label, the browser's own range input and a readout. What is shown is what is announced: one text for both.
const MOVES = /^(Arrow|Page|Home|End)/; // JupyterLab would take these keys for moving between cells

function render({ model, el }) {
  const texts = model.get("texts");
  const label = document.createElement("label");
  const input = document.createElement("input");
  const readout = document.createElement("span");

  label.textContent = model.get("description");
  label.htmlFor = input.id = `slider-${crypto.getRandomValues(new Uint32Array(2)).join("")}`;
  Object.assign(input, { type: "range", min: 0, max: texts.length - 1, step: 1 });
  input.setAttribute("aria-label", label.textContent);
  readout.setAttribute("aria-hidden", "true"); // the input announces the same text
  el.classList.add("board-slider");
  el.append(label, input, readout);

  const show = () => {
    readout.textContent = texts[input.valueAsNumber];
    input.setAttribute("aria-valuetext", readout.textContent);
  };
  const follow = () => {
    input.value = model.get("index");
    show();
  };
  input.addEventListener("keydown", (event) => MOVES.test(event.key) && event.stopPropagation());
  input.addEventListener("input", show);
  input.addEventListener("change", () => {
    model.set("index", input.valueAsNumber);
    model.save_changes();
  });
  model.on("change:index", follow);
  follow();
  return () => model.off("change:index", follow);
}

export default { render };
