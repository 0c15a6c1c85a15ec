// "Which method?": a budget and two switches leave the methods that fit, in the table and in the picture. The pictures
// stand in the page; the one that was asked for is shown, and what does not fit is pale in it.
document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(".vp-which").forEach((box) => {
  const [kinds, tasks] = box.querySelector("template").content.querySelectorAll("select");
  const pictures = [...box.querySelectorAll(".vp-scatter")], rows = [...box.querySelectorAll("tbody tr")];
  const lines = [...box.querySelectorAll("table tr")].map((line) => [...line.cells]);
  const facts = (row) => row.querySelector("[data-slug]").dataset;
  const asked = new URLSearchParams(location.hash.startsWith("#?") ? location.hash.slice(2) : location.search);
  const {bar, field: labelled} = vp.bar();
  const field = (name, text, control) => {
    labelled(name, text, control);
    if (asked.has(name)) control.value = asked.get(name);
    return control;
  };
  const along = field("x", "Picture against", vp.select({share: "trained parameters", memory: "memory", seconds: "time of a step"}));
  const task = field("task", "Photographs", tasks), kind = field("kind", "The method", kinds);
  // A slider stops at every value that a method has, so that each stop changes something.
  const budget = [["share", "Trained at most", "% of the network"], ["memory", "Memory at most", "GiB"], ["seconds", "Step at most", "s"]]
    .map(([name, text, unit]) => {
      const stops = [...new Set(rows.map((row) => facts(row)[name]).filter(Boolean))].sort((a, b) => a - b);
      const slider = field(name, text, vp.make("input", {type: "range", min: 0, max: stops.length - 1, value: stops.length - 1}));
      const output = vp.make("output");
      slider.after(" ", output);
      return {name, slider, fits: (row) => !facts(row)[name] || Number(facts(row)[name]) <= Number(stops[slider.value]), tell: () => {
        output.value = `${Number(Number(stops[slider.value]).toPrecision(2))} ${unit}`;
        slider.setAttribute("aria-valuetext", output.value);
      }};
    });
  const count = vp.make("span");
  count.setAttribute("role", "status");
  bar.append(count);
  let first;
  // The column of the chosen photographs stands behind the names, and its highest value on top.
  const lead = () => {
    first = task.value;
    const at = task.selectedIndex ? task.selectedIndex + 2 : 1;
    lines.forEach(([name, ...cells]) => name.after(cells[at - 1], ...cells.toSpliced(at - 1, 1)));
    const value = (row) => parseFloat(row.cells[1].textContent);
    box.querySelector("tbody").append(...rows.toSorted((a, b) => value(b) - value(a)));
    box.querySelectorAll("th").forEach((head) => head.removeAttribute("aria-sort"));
  };
  const show = (remember) => {
    if (task.value !== first) lead();
    const left = new Set();
    budget.forEach(({tell}) => tell());
    rows.forEach((row) => {
      row.hidden = !budget.every(({fits}) => fits(row)) || (kind.value && facts(row).kind !== kind.value);
      if (!row.hidden) left.add(facts(row).slug);
    });
    pictures.forEach((picture) => {
      picture.toggleAttribute("hidden", picture.dataset.x !== along.value || picture.dataset.task !== task.value);
      picture.querySelectorAll("g").forEach((mark) => mark.classList.toggle("vp-out", !left.has(mark.dataset.slug)));
    });
    count.textContent = `${left.size} of ${rows.length} methods`;
    if (remember) {
      const set = [along, task, kind, ...budget.map(({slider}) => slider)].map((control) => [control.name, control.value]);
      history.replaceState(null, "", `#?${new URLSearchParams(set)}`);
    }
  };
  box.prepend(bar);
  bar.addEventListener("input", () => show(true));
  show(false);
}));
