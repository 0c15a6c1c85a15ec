// The method explorer: a table of costs that is counted anew for a backbone, a number of prompts and of classes, and the
// line of code of the row that was picked. What is chosen stands in the page's address.
document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(".vp-explorer").forEach((box) => {
  const {backbones, tokens: known, classes: counted, usual, counts} = JSON.parse(box.querySelector("script").textContent);
  const asked = new URLSearchParams(location.search);
  const {bar: controls, field: labelled} = vp.bar();
  const field = (name, text, control) => Object.assign(labelled(name, text, control), {value: asked.get(name) || control.value});
  const names = Object.fromEntries([...box.querySelectorAll("th[data-slug]")].map((th) => [th.dataset.slug, th.textContent]));
  const backbone = field("backbone", "Backbone", vp.select(Object.fromEntries(Object.keys(counts).map((n) => [n, backbones[n]]))));
  const prompts = field("prompts", "Prompts", vp.number(usual[1], 1, 1000));
  const classes = field("classes", "Classes", vp.number(usual[2], 10, 100000));
  const method = field("method", "Method", vp.select(names));
  if (!asked.get("method")) method.value = "vpt-deep";
  const code = document.createElement("pre");
  box.prepend(controls);
  box.append(code);
  const at = (values, tokens) => values.length === 1 ? values[0] : Math.round(known.reduce((sum, here, place) => (
    sum + known.reduce((part, other) => other === here ? part : part * (tokens - other) / (here - other), values[place])), 0));
  const show = (remember) => {
    if (!prompts.checkValidity() || !classes.checkValidity()) return;
    const [p, c] = [prompts.valueAsNumber, classes.valueAsNumber];
    box.querySelectorAll("tbody tr").forEach((row) => {
      const found = counts[backbone.value][row.cells[0].dataset.slug], own = at(found.method, p);
      const flops = at(found.flops, p) + 2 * found.width * (c - counted);
      const cells = [own.toLocaleString("en-US"), (own + c * (found.width + 1)).toLocaleString("en-US"), (flops / 1e9).toFixed(2),
        (at(found.memory, p) / 2 ** 30).toFixed(2)];
      cells.forEach((text, place) => { row.cells[place + 1].textContent = text; });
      row.classList.toggle("vp-picked", row.cells[0].dataset.slug === method.value);
    });
    const more = counts[backbone.value][method.value].method.length > 1 ? `, prompt_tokens=${p}` : "";
    box.querySelector("caption").textContent = `${backbones[backbone.value]}, ${p} prompts where a method has them, ${c} classes`;
    code.textContent = `vp.build_method("${method.value}", vp.load_backbone("${backbone.value}", "pretrained"), ${c}${more})`;
    if (remember) {
      const words = new URLSearchParams([backbone, prompts, classes, method].map((control) => [control.name, control.value]));
      history.replaceState(null, "", `?${words}${location.hash}`);
    }
  };
  controls.addEventListener("input", () => show(true));
  show(false);
}));
