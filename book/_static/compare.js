// Compare a result: a record or a number beside the accuracies that papers print and kept runs gave.
document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(".vp-compare").forEach((box) => {
  const {rows: short, words, methods} = JSON.parse(box.querySelector("script").textContent);
  const rows = short.map((row) => row.map((cell, place) => place === 3 ? cell : words[cell]));
  const key = (text) => text.toLowerCase().replace(/[^a-z0-9]/g, "");
  const controls = document.createElement("div"), said = document.createElement("p"), table = document.createElement("table");
  const scroll = document.createElement("div");
  controls.className = "vp-filter";
  Object.assign(scroll, {className: "vp-table", tabIndex: 0});
  said.setAttribute("aria-live", "polite");
  const field = (name, text, control) => {
    const label = document.createElement("label");
    label.textContent = `${text} `;
    label.append(Object.assign(control, {name}));
    controls.append(label);
    return control;
  };
  const input = (given) => Object.assign(document.createElement("input"), given);
  const pasted = field("record", "Record", Object.assign(document.createElement("textarea"), {rows: 2, placeholder: "{\"id\": …}"}));
  const data = field("data", "Data set", document.createElement("select"));
  const method = field("method", "Method", document.createElement("select"));
  const accuracy = field("accuracy", "Accuracy, %", input({type: "number", min: 0, max: 100, step: "any"}));
  const fill = (list, names) => {
    const kept = list.value;
    list.replaceChildren(...[...new Set(names)].map((name) => new Option(name, name)));
    if (names.includes(kept)) list.value = kept;
  };
  const choose = () => fill(method, rows.filter((row) => row[0] === data.value).map((row) => row[1]));
  const line = (cells, kind) => {
    const row = document.createElement("tr");
    cells.forEach(([text, markup]) => {
      const cell = document.createElement(kind);
      if (markup) cell.innerHTML = text; else cell.textContent = text;
      row.append(cell);
    });
    return row;
  };
  const show = () => {
    const found = rows.filter((row) => row[0] === data.value && row[1] === method.value);
    const own = accuracy.value !== "" && accuracy.checkValidity() ? accuracy.valueAsNumber : null;
    const heads = ["Network", "Accuracy, %", "Yours is off by", "Where"].map((text) => [text]);
    table.replaceChildren(line(heads, "th"), ...found.map(([, , network, percent, spread, where]) => {
      const off = own === null ? "" : `${own < percent ? "−" : "+"}${Math.abs(own - percent).toFixed(1)}`;
      return line([[network], [spread ? `${percent} ± ${spread}` : `${percent}`], [off], [where, true]], "td");
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
    const known = [...data.options].find((option) => key(option.value) === key(settings.task));
    if (known) { data.value = known.value; choose(); }
    if (!known || ![...method.options].some((option) => option.value === name)) {
      said.textContent = `Nothing is kept or printed for ${name} on ${settings.task} by that name; choose what comes nearest.`;
    } else {
      method.value = name;
      said.textContent = `${name} on ${settings.task}, ${settings.backbone}, seed ${settings.seed}: ${values.test} %.`;
    }
  };
  fill(data, rows.map((row) => row[0]));
  choose();
  box.querySelector("p").remove();
  scroll.append(table);
  box.append(controls, said, scroll);
  controls.addEventListener("input", (event) => {
    if (event.target === pasted) read();
    if (event.target === data) choose();
    show();
  });
  show();
}));
