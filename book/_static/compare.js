// Compare a result: a record or a number beside the accuracies that papers print and kept runs gave.
document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(".vp-compare").forEach((box) => {
  const {rows: short, words, methods, tasks} = JSON.parse(box.querySelector("script").textContent);
  const rows = short.map((row) => row.map((cell, place) => place === 3 ? cell : words[cell]));
  const key = (text) => String(text).toLowerCase().replace(/[^a-z0-9]/g, "");
  const {bar: controls, field} = vp.bar(), table = vp.make("table"), said = vp.make("p");
  said.setAttribute("aria-live", "polite");
  const pasted = field("record", "Record", vp.make("textarea", {rows: 2, placeholder: "{\"id\": …}"}));
  const data = field("data", "Data set", vp.select()), method = field("method", "Method", vp.select());
  const accuracy = field("accuracy", "Accuracy, %", vp.make("input", {type: "number", min: 0, max: 100, step: "any"}));
  const choose = () => vp.fill(method, vp.same(rows.filter((row) => row[0] === data.value).map((row) => row[1])));
  const line = (kind, ...cells) => vp.make("tr", {}, ...cells.map((given) => vp.make(kind, given)));
  const show = () => {
    const found = rows.filter((row) => row[0] === data.value && row[1] === method.value);
    const own = accuracy.value !== "" && accuracy.checkValidity() ? accuracy.valueAsNumber : null;
    const heads = ["Network", "Accuracy, %", "Yours is off by", "Where"].map((textContent) => ({textContent}));
    table.replaceChildren(line("th", ...heads), ...found.map(([, , network, percent, spread, where]) => {
      const off = own === null ? "" : `${own < percent ? "−" : "+"}${Math.abs(own - percent).toFixed(1)}`;
      const texts = [network, spread ? `${percent.toFixed(1)} ± ${spread}` : `${percent}`, off].map((textContent) => ({textContent}));
      return line("td", ...texts, {innerHTML: where});
    }));
  };
  const read = () => {
    said.textContent = "";
    if (!pasted.value.trim()) return;
    let record;
    try { record = JSON.parse(pasted.value); } catch { said.textContent = "This is no record: paste a whole file of build/records/tune."; return; }
    const {settings, values} = record ?? {};
    if (record?.kind !== "tune" || !settings?.method || typeof values?.test !== "number") {
      said.textContent = "This record holds no accuracy: paste one of build/records/tune.";
      return;
    }
    accuracy.value = values.test;
    const name = methods[settings.method] ?? settings.method;
    const known = [...data.options].find((option) => key(option.value) === key(tasks[settings.task] ?? settings.task));
    if (known) { data.value = known.value; choose(); }
    if (!known || ![...method.options].some((option) => option.value === name)) {
      said.textContent = `Nothing is kept or printed for ${name} on ${settings.task} by that name; choose what comes nearest.`;
    } else {
      method.value = name;
      said.textContent = `${name} on ${settings.task}, ${settings.backbone}, seed ${settings.seed}: ${values.test} %.`;
    }
  };
  vp.fill(data, vp.same(rows.map((row) => row[0])));
  choose();
  box.querySelector("p").remove();
  box.append(controls, said, vp.make("div", {className: "vp-table", tabIndex: 0}, table));
  controls.addEventListener("input", (event) => {
    if (event.target === pasted) read();
    if (event.target === data) choose();
    show();
  });
  show();
}));
