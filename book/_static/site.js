// A text field above each .vp-filterable table: only rows with every typed word stay. Without it the table is whole.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".vp-filterable").forEach((box, number) => {
    const rows = [...box.querySelectorAll("tbody tr")];
    const form = document.createElement("div");
    form.className = "vp-filter";
    form.innerHTML = `<label for="vp-filter-${number}">Filter</label>` +
      `<input id="vp-filter-${number}" type="search" placeholder="for example: ap derived">` +
      `<span role="status"></span>`;
    const input = form.querySelector("input"), count = form.querySelector("span");
    const apply = () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let left = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        left += !row.hidden;
      }
      count.textContent = `${left} of ${rows.length}`;
    };
    input.addEventListener("input", apply);
    box.before(form);
    apply();
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
