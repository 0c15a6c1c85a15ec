// Above each .vp-filterable table: a text field, and a list for each column that data-choices names by its number.
// Only rows with every typed word and every picked one stay. Without this the table is whole.
const plain = (text) => text.toLowerCase().replace(/²/g, "2");
// Numbers as a program reads them: −2 is -2, and 1.8 × 10⁻¹⁵ is 1.8e-15.
const asTyped = (text) => text.replace(/(?:(\d) × )?\b10(⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)/g, (_, digit, power) => (
  `${digit ?? 1}e${[...power].map((c) => c === "⁻" ? "-" : "⁰¹²³⁴⁵⁶⁷⁸⁹".indexOf(c)).join("")}`)).replace(/−(?=[\d.])/g, "-");

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
      select.name = head.toLowerCase();
      select.append(new Option(`${head}: all`, ""), ...found.map((word) => new Option(word, word)));
      form.append(select);
      return {select, words};
    });
    const count = document.createElement("span");
    count.setAttribute("role", "status");
    form.append(count);
    const input = form.querySelector("input");
    input.name = "words";
    const fields = [input, ...picks.map(({select}) => select)];
    const keeps = "address" in box.dataset;
    // The selection is read from ?paper=AP&verdict=agrees, or from behind #? where it is written: a page that was opened
    // from a folder may not change more of its address.
    const read = () => {
      const kept = new URLSearchParams(location.hash.startsWith("#?") ? location.hash.slice(2) : location.search);
      fields.forEach((field) => { field.value = kept.get(field.name) || ""; });
    };
    const write = () => {
      const set = fields.filter((field) => field.value).map((field) => [field.name, field.value]);
      history.replaceState(null, "", `#?${new URLSearchParams(set)}`);
    };
    const apply = () => {
      const typed = plain(input.value).split(/\s+/).filter(Boolean);
      let left = 0;
      for (const row of rows) {
        const text = plain(row.textContent);
        row.hidden = !typed.every((word) => text.includes(word)) ||
          !picks.every(({select, words}) => !select.value || words(row).includes(select.value));
        left += !row.hidden;
      }
      count.textContent = `${left} of ${rows.length}`;
    };
    fields.forEach((field) => field.addEventListener("input", () => { apply(); if (keeps) write(); }));
    box.before(form);
    if (keeps) {
      read();
      window.addEventListener("pageshow", () => { if (location.hash.startsWith("#?")) { read(); apply(); } });
      form.append(csvOf(box, rows));
    }
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
    table.querySelectorAll("thead th").forEach((head) => {
      const button = document.createElement("button");
      button.type = "button";
      button.title = "Sort by this column";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const key = (row) => row.cells[head.cellIndex].textContent.trim();
        const value = (row) => parseFloat(asTyped(key(row).replace(/,/g, "")));
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

// A formula wider than the page scrolls, by keyboard too. Those of long tables are set when they come into view.
window.addEventListener("load", () => window.MathJax?.startup?.promise.then(() => {
  const wide = () => document.querySelectorAll("mjx-container").forEach((box) => {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  });
  const set = (places) => { places.forEach((one) => { one.className = "math"; }); MathJax.typesetPromise(places).then(wide); };
  const eye = new IntersectionObserver((seen) => {
    const places = seen.filter((one) => one.isIntersecting).map((one) => one.target);
    places.forEach((one) => eye.unobserve(one));
    set(places);
  }, {rootMargin: "50%"});
  document.querySelectorAll(".vp-math").forEach((one) => eye.observe(one));
  wide();
}));

// What a table says, as lines of words: its head, then the rows that no filter hides.
const wordsOf = (td) => asTyped((td.querySelector("summary") || td).textContent.trim().replace(/\s+/g, " "));
const linesOf = (table) => [...table.rows].filter((row) => !row.hidden).map((row) => [...row.cells].map(wordsOf));
const asCsv = (lines) => lines.map((line) => line.map((word) => `"${word.replace(/"/g, '""')}"`).join(",")).join("\r\n");
const save = (lines, name) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([asCsv(lines)], {type: "text/csv"}));
  link.download = name;
  link.click();
};
const buttonOf = (words, act) => {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "vp-button";
  button.textContent = words;
  button.addEventListener("click", act);
  return button;
};

// A button that hands over the claims that are left, as CSV, each with the id that is its address.
const csvOf = (box, rows) => buttonOf("CSV of these", () => {
  const heads = [...box.querySelectorAll("thead th")].map(wordsOf);
  const left = rows.filter((row) => !row.hidden);
  const lines = left.map((row) => [row.querySelector("[id]").id, ...[...row.cells].map(wordsOf)]);
  save([["id", ...heads], ...lines], "claims.csv");
});

// Below every plot: a button that shows it larger, on narrow screens alone.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".vp-figure:has(> img, > .vp-slices)").forEach((figure) => {
    const button = buttonOf("Larger picture", () => {
      const large = figure.classList.toggle("vp-zoomed");
      button.setAttribute("aria-pressed", large);
      figure.tabIndex = large ? 0 : -1;  // scrolls by keyboard too
    });
    button.classList.add("vp-zoom");
    button.setAttribute("aria-pressed", false);
    figure.querySelector(":scope > figcaption").before(button);
  });
});

// Below every other table of a page: as a file, and onto the clipboard as a spreadsheet takes it.
document.addEventListener("DOMContentLoaded", () => {
  const page = location.pathname.split("/").pop().replace(/\.html$/, "") || "table";
  document.querySelectorAll(".bd-article .vp-table table").forEach((table, number) => {
    if (table.rows.length < 3 || table.closest("[data-address], .vp-in-short, .vp-cards")) return;
    const bar = document.createElement("div");
    bar.className = "vp-take";
    const copy = buttonOf("Copy", async () => {
      await navigator.clipboard.writeText(linesOf(table).map((line) => line.join("\t")).join("\n"));
      copy.textContent = "Copied";
    });
    bar.append(buttonOf("CSV", () => save(linesOf(table), `${page}-${number + 1}.csv`)), copy);
    (table.closest(".vp-table") || table).after(bar);
  });
});

// A link to a source cell, or to a row, opens what is folded there.
const unfold = () => {
  const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!place) return;
  const fold = (place.classList.contains("cell") ? place : place.closest("tr"))?.querySelector("details");
  for (let around = place.closest("details"); around; around = around.parentElement.closest("details")) around.open = true;
  if (fold) fold.open = true;
};
window.addEventListener("hashchange", unfold);
document.addEventListener("DOMContentLoaded", unfold);

// Paper is light and shows everything: what is folded opens before printing and closes again behind it, and a table that
// is wider than a sheet (about 590 px) is made smaller.
const opened = [], page = document.documentElement.dataset;
let theme = "light";
window.matchMedia("print").addEventListener("change", (print) => {
  const tables = [...document.querySelectorAll(".vp-table table")];
  if (print.matches) theme = page.theme;
  page.theme = print.matches ? "light" : theme;
  if (print.matches) {
    document.querySelectorAll(".bd-article details:not([open])").forEach((fold) => { fold.open = true; opened.push(fold); });
    window.MathJax?.typeset?.([...document.querySelectorAll(".vp-math")]);
    tables.forEach((table) => { table.style.zoom = Math.min(1, 590 / table.scrollWidth); });
  } else {
    opened.splice(0).forEach((fold) => { fold.open = false; });
    tables.forEach((table) => { table.style.zoom = ""; });
  }
});
