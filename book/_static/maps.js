// The attention viewer: where the class token and every prompt look, for a run, a test image and a block.
document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(".vp-maps").forEach((box) => {
  const runs = JSON.parse(box.querySelector("script").textContent);
  const colours = [[0, 0, 4], [81, 18, 124], [183, 55, 121], [252, 137, 97], [252, 253, 191]];  // dark to light
  const {bar: controls, field} = vp.bar(), shown = vp.make("div", {className: "vp-tiles"}), told = vp.make("output");
  const run = field("run", "Run", vp.select(vp.same(Object.keys(runs)))), image = field("image", "Image", vp.select());
  const block = field("block", "Block", vp.make("input", {type: "range", min: 0, value: 0}));
  controls.append(told);
  const tile = (thing, text) => vp.make("figure", {}, thing, vp.make("figcaption", {textContent: text}));
  const map = (levels, side, text) => {
    const canvas = vp.make("canvas", {width: side, height: side});
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Attention of ${text}`);
    const pen = canvas.getContext("2d"), pixels = pen.createImageData(side, side);
    levels.forEach((level, place) => {
      const at = level / 255 * (colours.length - 1), low = Math.min(Math.floor(at), colours.length - 2);
      colours[low].forEach((value, k) => { pixels.data[4 * place + k] = value + (at - low) * (colours[low + 1][k] - value); });
      pixels.data[4 * place + 3] = 255;
    });
    pen.putImageData(pixels, 0, 0);
    return canvas;
  };
  const choose = () => {
    const {shape, labels} = runs[run.value];
    vp.fill(image, Object.fromEntries(labels.map((label, i) => [i, `${i}, class ${label}`])));
    block.max = shape[1] - 1;
  };
  const show = () => {
    const {shape, levels, most, own, prompts, pictures} = runs[run.value], [, blocks, looks, patches] = shape;
    const bytes = Uint8Array.from(atob(levels), (letter) => letter.charCodeAt(0)), i = Number(image.value), b = block.valueAsNumber;
    const picture = vp.make("img", {src: pictures[i], alt: `Test image ${i}`});
    told.textContent = `block ${b} (0 to ${blocks - 1})`;
    shown.replaceChildren(tile(picture, "image"), ...[...Array(looks).keys()].map((look) => {
      const prompt = prompts[look - 1], mine = look && prompt === own[i] ? ", its class's" : "";
      const name = look ? `prompt ${prompt}${mine}` : "class token";
      const start = ((i * blocks + b) * looks + look) * patches;
      return tile(map([...bytes.slice(start, start + patches)], Math.sqrt(patches), name), `${name}: ${most[i][b][look].toFixed(3)}`);
    }));
  };
  choose();
  box.querySelector("p").remove();
  box.append(controls, shown);
  controls.addEventListener("input", (event) => {
    if (event.target === run) choose();
    show();
  });
  show();
}));
