// A coloured word leads to what it means; an unfolded claim can be cited.
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
