// Above each .vp-filterable table: a text field, and a list for each column that data-choices names by its number.
// Only rows with every typed word and every picked one stay. Without this the table is whole.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".vp-filterable").forEach((box, number) => {
    const rows = [...box.querySelectorAll("tbody tr")];
    const form = document.createElement("div");
    form.className = "vp-filter";
    form.innerHTML = `<label for="vp-filter-${number}">Filter</label>` +
      `<input id="vp-filter-${number}" type="search" placeholder="words, for example: table 3">`;
    const picks = (box.dataset.choices || "").split(",").filter(Boolean).map((column) => {
      const words = (row) => {
        const badges = [...row.cells[column].querySelectorAll(".vp-badge")];
        return badges.length ? badges.map((badge) => badge.textContent) : [row.cells[column].textContent.trim()];
      };
      const found = [...new Set(rows.flatMap(words))].filter(Boolean).sort();
      const select = document.createElement("select");
      const head = box.querySelectorAll("thead th")[column].textContent;
      select.setAttribute("aria-label", head);
      select.append(new Option(`${head}: all`, ""), ...found.map((word) => new Option(word, word)));
      form.append(select);
      return {select, words};
    });
    const count = document.createElement("span");
    count.setAttribute("role", "status");
    form.append(count);
    const input = form.querySelector("input");
    const apply = () => {
      const typed = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let left = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !typed.every((word) => text.includes(word)) ||
          !picks.every(({select, words}) => !select.value || words(row).includes(select.value));
        left += !row.hidden;
      }
      count.textContent = `${left} of ${rows.length}`;
    };
    [input, ...picks.map(({select}) => select)].forEach((field) => field.addEventListener("input", apply));
    box.before(form);
    apply();
    window.addEventListener("hashchange", () => {  // a link may lead to a row that is filtered away
      const row = document.getElementById(decodeURIComponent(location.hash.slice(1)))?.closest("tr");
      if (row && row.hidden && box.contains(row)) {
        input.value = "";
        picks.forEach(({select}) => { select.value = ""; });
        apply();
        row.scrollIntoView();
      }
    });
  });

  // The heads of a .vp-sortable table sort it: numbers by value, texts by letter, again the other way round.
  document.querySelectorAll(".vp-sortable table").forEach((table) => {
    table.querySelectorAll("thead th").forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.title = "Sort by this column";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const key = (row) => row.cells[column].textContent.trim();
        const value = (row) => parseFloat(key(row).replace(/,/g, ""));
        const order = (a, b) => {
          const [x, y] = [value(a), value(b)];
          if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1;  // texts behind numbers
          return (Number.isNaN(x) ? key(a).localeCompare(key(b)) : x - y) * (down ? -1 : 1);
        };
        table.tBodies[0].append(...[...table.tBodies[0].rows].sort(order));
      });
    });
  });

  // A .vp-slices holds a picture for every stop of its slider, which stays hidden where it would not work.
  document.querySelectorAll(".vp-slices").forEach((box) => {
    const [slider, output, label] = ["input", "output", "label"].map((name) => box.querySelector(name));
    const pictures = [...box.querySelectorAll("img")];
    const show = () => {
      const at = slider.valueAsNumber;
      pictures.forEach((picture, number) => { picture.hidden = number !== at; });
      output.value = pictures[at].dataset.label;
      slider.setAttribute("aria-valuetext", output.value);
    };
    slider.addEventListener("input", show);
    show();
    label.hidden = false;
  });
});

// A link to a source cell opens the cell when it is folded.
const unfold = () => {
  const cell = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const fold = cell && cell.classList.contains("cell") && cell.querySelector("details");
  if (fold) fold.open = true;
};
window.addEventListener("hashchange", unfold);
document.addEventListener("DOMContentLoaded", unfold);
