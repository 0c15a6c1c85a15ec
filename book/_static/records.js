// The records of an artifact: a row a run, found by its id in the address, in full when it is opened, and all as a file.
document.addEventListener("DOMContentLoaded", () => {
  const bundle = JSON.parse(document.getElementById("bundle").textContent), main = document.querySelector("main"), {make} = vp;
  const text = (value) => value === undefined || value === null ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
  const columns = {
    id: (r) => r.id, kind: (r) => r.kind, method: (r) => r.settings.method, backbone: (r) => r.settings.backbone,
    task: (r) => r.settings.task, seed: (r) => r.settings.seed,
    rate: (r) => r.settings.recipe && (r.settings.method === "linear-probe" ? r.settings.recipe.head_rate : r.settings.recipe.learning_rate),
    "val, %": (r) => r.kind === "tune" ? r.values.val : undefined, "test, %": (r) => r.kind === "tune" ? r.values.test : undefined,
    "what else differs": (r) => differing.filter((name) => others(r)[name] !== undefined).map((name) => `${name} ${others(r)[name]}`).join(", "),
    code: (r) => r.current ? (r.carried ? "today's, carried " + r.carried : "today's") : "older", "other versions": (r) => r.other_versions, made: (r) => r.date, at: (r) => r.commit, seconds: (r) => r.seconds,
    hardware: (r) => r.hardware.gpu || r.hardware.cpu,
  };
  // What a run is beside its method, network and task: plain settings, and those of the method.
  const shown = ["method", "backbone", "task", "seed"];
  const others = ({settings}) => Object.fromEntries(Object.entries({...settings, ...settings.method_settings}).filter(
    ([name, value]) => !shown.includes(name) && value !== null && typeof value !== "object"));
  const whole = bundle.records.filter((record) => record.kind), elsewhere = bundle.records.filter((record) => !record.kind);
  const names = [...new Set(whole.flatMap((record) => Object.keys(others(record))))];
  const differing = names.filter((name) => new Set(whole.map((record) => others(record)[name])).size > 1);
  const used = Object.entries(columns).filter(([, of]) => whole.some((record) => text(of(record)) !== ""));
  const rows = whole.map((record) => {
    const row = make("tr", {id: record.id});
    used.forEach(([name, of]) => {
      const value = of(record), cell = make("td", {className: typeof value === "number" ? "number" : text(value).length > 40 ? "wide" : ""});
      if (name !== "id") cell.append(text(value));
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
  const links = elsewhere.map(({id, in: page}) => make("li", {id}, make("a", {href: `${page}#${id}`, textContent: id})));
  const other = make("section", {}, make("h2", {textContent: "On other pages, which show them too"}), make("ul", {}, ...links));
  if (links.length) main.append(other);
  const asked = new URLSearchParams(location.search).get("runs")?.split(","), runs = [...rows, ...links];
  if (asked) {  // by a cell of a table: its runs alone
    runs.forEach((run) => { run.hidden = !asked.includes(run.id); });
    other.hidden = links.every((link) => link.hidden);
    const all = make("button", {type: "button", textContent: "Show all"}), mine = runs.filter((run) => !run.hidden).length;
    const said = make("p", {}, `${mine} of ${runs.length} records, those behind the cell that led here. `, all);
    all.addEventListener("click", () => { [other, ...runs].forEach((part) => { part.hidden = false; }); said.remove(); });
    main.querySelector("p:not(.vp-rehearsal)").after(said);
  }
  const file = URL.createObjectURL(new Blob([JSON.stringify(bundle, null, 1)], {type: "application/json"}));
  main.append(make("p", {}, make("a", {href: file, download: `${bundle.artifact.id}.json`, textContent: "All of it as JSON"})));
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
});
