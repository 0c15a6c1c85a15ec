// The records of an artifact: a row a run, found by its id in the address, in full when it is opened, and all as a file.
document.addEventListener("DOMContentLoaded", () => {
  const bundle = JSON.parse(document.getElementById("bundle").textContent), main = document.querySelector("main"), {make} = vp;
  // What several records have stands once in the page.
  bundle.records.forEach((record) => [record, record.settings ?? {}].forEach((where) => {
    for (const [name, value] of Object.entries(where)) if (value?.$shared !== undefined) where[name] = bundle.shared[value.$shared];
  }));
  delete bundle.shared;
  const text = (value) => value === undefined || value === null ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
  const short = (value) => value && Number(value.toPrecision(3));
  const columns = {
    id: (r) => r.id, kind: (r) => r.kind, method: (r) => r.settings.method, backbone: (r) => r.settings.backbone,
    task: (r) => r.settings.task, seed: (r) => r.settings.seed,
    "learning rate": (r) => r.settings.recipe && short(r.settings.recipe[r.settings.method === "linear-probe" ? "head_rate" : "learning_rate"]),
    "val, %": (r) => r.kind === "tune" ? r.values.val : undefined, "test, %": (r) => r.kind === "tune" ? r.values.test : undefined,
    "what else differs": (r) => differing.filter((name) => others(r)[name] !== undefined).map((name) => `${name} ${others(r)[name]}`).join(", "),
    seconds: (r) => short(r.seconds), hardware: (r) => r.hardware && (r.hardware.gpu || r.hardware.cpu),
    code: (r) => r.page ? "" : r.current ? (r.carried ? "today's, carried " + r.carried : "today's") : "older", "other versions": (r) => r.other_versions, made: (r) => r.date, at: (r) => r.commit,
  };
  // What a run is beside its method, network and task: plain settings, and those of the method.
  const shown = ["method", "backbone", "task", "seed"];
  const others = ({settings}) => Object.fromEntries(Object.entries({...settings, ...settings.method_settings}).filter(
    ([name, value]) => !shown.includes(name) && value !== null && typeof value !== "object"));
  const full = bundle.records.filter((record) => record.kind);
  // A record that stands in full on another page has a row here too, with what that row needs, and leads there.
  const whole = bundle.records.map((record) => {
    if (record.kind) return record;
    const [kind, method, backbone, task, seed, test, seconds, cpu] = record.brief;
    return {id: record.id, page: record.in, kind, settings: {method, backbone, task, seed}, values: {test}, seconds, hardware: {cpu}};
  });
  const names = [...new Set(full.flatMap((record) => Object.keys(others(record))))];
  const differing = names.filter((name) => new Set(full.map((record) => others(record)[name])).size > 1);
  const used = Object.entries(columns).filter(([, of]) => whole.some((record) => text(of(record)) !== ""));
  const rows = whole.map((record) => {
    const row = make("tr", {id: record.id});
    used.forEach(([name, of]) => {
      const value = of(record), cell = make("td", {className: typeof value === "number" ? "number" : text(value).length > 40 ? "wide" : ""});
      if (name !== "id") cell.append(text(value));
      else if (record.page) cell.append(make("a", {href: `${record.page}#${record.id}`, textContent: record.id}));
      else {
        const button = make("button", {type: "button", textContent: record.id, ariaExpanded: "false"});
        button.addEventListener("click", () => {
          const closed = button.ariaExpanded === "false";
          button.ariaExpanded = String(closed);
          if (!closed) return row.nextSibling.remove();
          const all = make("td", {colSpan: used.length}, make("pre", {textContent: JSON.stringify(record, null, 1)}));
          row.after(make("tr", {}, all));
        });
        cell.append(button);
      }
      row.append(cell);
    });
    return row;
  });
  if (rows.length) {
    const head = make("tr", {}, ...used.map(([name]) => make("th", {scope: "col", textContent: name})));
    main.append(make("div", {className: "runs", tabIndex: 0}, make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows))));
  }
  const asked = new URLSearchParams(location.search).get("runs")?.split(",");
  if (asked) {  // by a cell of a table: its runs alone
    rows.forEach((run) => { run.hidden = !asked.includes(run.id); });
    const all = make("button", {type: "button", textContent: "Show all"}), mine = rows.filter((run) => !run.hidden).length;
    const said = make("p", {}, `${mine} of ${rows.length} records, those behind the cell that led here. `, all);
    all.addEventListener("click", () => { rows.forEach((run) => { run.hidden = false; }); said.remove(); });
    main.querySelector("p:not(.vp-rehearsal)").after(said);
  }
  const file = URL.createObjectURL(new Blob([JSON.stringify(bundle, null, 1)], {type: "application/json"}));
  main.append(make("p", {}, make("a", {href: file, download: `${bundle.artifact.id}.json`, textContent: "All of it as JSON"})));
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
});
