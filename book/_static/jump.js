// The jump box and the search's first results: every artifact, claim, method, data set, name and command by id, printed
// name or words. The list lies in places.js, which is loaded when it is first needed.
(() => {
  const root = document.documentElement.dataset.content_root || "./";
  const plain = (text) => text.toLowerCase().replace(/²/g, "2").replace(/[^a-z0-9+]+/g, " ").trim();
  const order = ["method", "artifact", "page", "data set", "package", "claim", "command"];
  let loading = null;
  const load = () => loading ||= new Promise((done) => {
    const script = document.createElement("script");
    script.src = `${root}_static/places.js`;
    script.onload = () => done(window.vpPlaces.map(([kind, name, id, address, note]) => (
      {kind, name, id, address, note, key: plain(name), ident: plain(id), all: ` ${plain(`${name} ${id} ${note}`)} `})));
    document.head.append(script);
  });
  // How well a place answers: its whole name or id, the end of its name ("Table A3" of "AP, Table A3"), its start, all words
  // as words (a claim's name is a sentence, which holds many), all words as beginnings.
  const worth = (place, asked, words) => {
    if (place.key === asked || place.ident === asked) return 100;
    if (place.key.endsWith(` ${asked}`) && place.kind === "artifact") return 90;
    if (place.key.startsWith(`${asked} `)) return 70;
    if (place.kind !== "claim" && words.every((word) => ` ${place.key} `.includes(` ${word} `))) return 60;
    if (words.every((word) => place.all.includes(` ${word} `))) return 40;
    return words.every((word) => place.all.includes(` ${word}`)) ? 20 : 0;
  };
  const find = (places, text, most) => {
    const asked = plain(text), words = asked.split(" ").filter(Boolean);
    if (!words.length) return [];
    let found = places.map((place) => [worth(place, asked, words), place]).filter(([value]) => value);
    if (!found.length) {  // those with the most of the words, if these are more than half
      const partly = places.map((place) => [words.filter((word) => place.all.includes(` ${word} `)).length, place]);
      const best = Math.max(...partly.map(([value]) => value));
      found = partly.filter(([value]) => value === best && 2 * value > words.length);
    }
    return found
      .sort(([x, a], [y, b]) => y - x || order.indexOf(a.kind) - order.indexOf(b.kind) || a.name.length - b.name.length)
      .slice(0, most).map(([, place]) => place);
  };
  const entry = (place) => {
    const link = document.createElement("a");
    link.href = root + place.address;
    const name = document.createElement("b"), rest = document.createElement("span");
    name.textContent = place.name;
    rest.className = "vp-how";
    rest.textContent = ` ${place.kind}${place.id && place.id !== place.name ? ` ${place.id}` : ""}${place.note ? `: ${place.note}` : ""}`;
    link.append(name, rest);
    return link;
  };

  const box = (here, number) => {
    here.innerHTML = `<label for="vp-jump-${number}">Jump to</label><input id="vp-jump-${number}" type="search" role="combobox" ` +
      `autocomplete="off" aria-expanded="false" aria-controls="vp-jump-list-${number}" aria-autocomplete="list" ` +
      `placeholder="table, claim, method, data set, command …"><ul id="vp-jump-list-${number}" role="listbox" ` +
      `aria-label="Places" hidden></ul>`;
    const input = here.querySelector("input"), list = here.querySelector("ul");
    let at = 0, shown = [];
    const search = () => { location.href = `${root}search.html?q=${encodeURIComponent(input.value)}`; };
    const mark = (place) => {
      at = place;
      [...list.children].forEach((item, number) => item.setAttribute("aria-selected", number === at));
      input.setAttribute("aria-activedescendant", list.children[at]?.id || "");
      list.children[at]?.scrollIntoView({block: "nearest"});
    };
    const show = async () => {
      shown = find(await load(), input.value, 12);
      list.replaceChildren(...shown.map((place, row) => {
        const item = document.createElement("li");
        item.id = `vp-jump-${number}-${row}`;
        item.setAttribute("role", "option");
        item.append(...entry(place).childNodes);
        item.addEventListener("mousedown", (event) => { event.preventDefault(); location.href = root + place.address; });
        return item;
      }));
      if (!shown.length && input.value.trim()) {
        const none = document.createElement("li");
        none.setAttribute("role", "option");
        none.textContent = "No place has such a name: search the text";
        none.addEventListener("mousedown", (event) => { event.preventDefault(); search(); });
        list.append(none);
      }
      list.hidden = !list.children.length;
      input.setAttribute("aria-expanded", !list.hidden);
      mark(0);
    };
    const hide = () => { list.hidden = true; input.setAttribute("aria-expanded", false); };
    input.addEventListener("focus", load);
    input.addEventListener("input", show);
    input.addEventListener("blur", hide);
    input.addEventListener("keydown", (event) => {
      const steps = {ArrowDown: 1, ArrowUp: -1};
      if (event.key in steps && shown.length) {
        event.preventDefault();
        mark((at + steps[event.key] + shown.length) % shown.length);
      } else if (event.key === "Enter" && input.value.trim()) {
        event.preventDefault();
        if (shown[at]) location.href = root + shown[at].address;
        else search();
      } else if (event.key === "Escape") {
        input.value = "";
        hide();
      }
    });
  };

  // Below each page that the search finds: the words around the first place with an asked one.
  const excerpts = (results, asked) => {
    const script = document.createElement("script"), words = plain(asked).split(" ").filter(Boolean);
    script.src = `${root}_static/excerpts.js`;
    const add = (item) => {
      const link = item.querySelector("a");
      const name = link?.getAttribute("href").replace(/[?#].*/, "").replace(/\.html$/, "").replace(/^(\.\/)+/, "");
      const text = window.vpTexts[name];
      if (!text || item.querySelector(".vp-how")) return;
      const low = text.toLowerCase(), places = words.map((word) => low.indexOf(word)).filter((place) => place >= 0);
      const from = places.length ? Math.max(0, low.lastIndexOf(" ", Math.min(...places) - 60)) : 0;
      const line = document.createElement("p");
      line.className = "vp-how";
      line.textContent = `${from ? "… " : ""}${text.slice(from, from + 180).replace(/\S*$/, "").trim()} …`;
      item.append(line);
    };
    script.onload = () => {
      const all = () => results.querySelectorAll("ul.search > li").forEach(add);
      new MutationObserver(all).observe(results, {childList: true, subtree: true});
      all();
    };
    document.head.append(script);
  };

  document.addEventListener("DOMContentLoaded", async () => {
    const side = document.querySelector("#pst-primary-sidebar .sidebar-primary-items__start");
    if (side) {
      const here = document.createElement("div");
      here.className = "vp-jump-here sidebar-primary-item";
      side.children[1] ? side.children[1].after(here) : side.append(here);
    }
    document.querySelectorAll(".vp-jump-here").forEach(box);
    const results = document.getElementById("search-results");
    const asked = new URLSearchParams(location.search).get("q");
    if (results && asked) {
      const found = find(await load(), asked, 10);
      const list = document.createElement("ul");
      list.className = "vp-places";
      list.append(...found.map((place) => {
        const item = document.createElement("li");
        item.append(entry(place));
        return item;
      }));
      if (found.length) results.before(list);
      excerpts(results, asked);
    }
  });
})();
