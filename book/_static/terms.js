// A coloured word leads to what it means, the name of a task or network in a table to its pictures; an unfolded claim can be cited.
document.addEventListener("DOMContentLoaded", () => {
  const root = document.documentElement.dataset.content_root || "./";
  document.querySelectorAll(".bd-article .vp-badge").forEach((badge) => {
    if (badge.closest("a, summary, button, .vp-rehearsal")) return;
    const link = document.createElement("a");
    link.className = "vp-term";
    link.href = `${root}glossary.html#term-${badge.textContent.trim().replace(/ /g, "-")}`;
    badge.replaceWith(link);
    link.append(badge);
  });
  document.querySelectorAll(".bd-article td, .bd-article tbody th").forEach((cell) => {
    const name = cell.textContent.trim(), place = window.vpNames?.[name];
    if (!place || cell.children.length || location.pathname.endsWith(place.split("#")[0])) return;
    const link = document.createElement("a");
    link.className = "vp-name";
    link.href = root + place;
    link.textContent = name;
    cell.replaceChildren(link);
  });
  const cited = document.querySelector(".vp-edition")?.dataset.cited;
  document.addEventListener("toggle", ({target}) => {
    const address = target.querySelector?.(".vp-address");
    if (!cited || !address || !target.open || target.querySelector(".vp-cite")) return;
    const button = document.createElement("button"), where = new URL(address.href);
    button.type = "button";
    button.className = "vp-button vp-cite";
    button.textContent = "Cite this claim";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(`${cited}, claim ${where.hash.slice(1)}. ${where.href}`);
      button.textContent = "Copied";
    });
    address.parentElement.append(" ", button);
  }, true);
});
