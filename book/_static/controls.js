// What the pages to play with share: elements, and a bar of labelled controls.
window.vp = {
  make: (tag, given = {}, ...parts) => {
    const thing = Object.assign(document.createElement(tag), given);
    thing.append(...parts);
    return thing;
  },
  number: (value, min, max) => vp.make("input", {type: "number", min, max, value}),
  // A list of {value: text}; filled again, it keeps what was chosen where it can.
  select: (options = {}) => vp.fill(vp.make("select"), options),
  fill: (list, options, kept = list.value) => {
    list.replaceChildren(...Object.entries(options).map(([value, text]) => new Option(text, value)));
    if (Object.hasOwn(options, kept)) list.value = kept;
    return list;
  },
  same: (words) => Object.fromEntries(words.map((word) => [word, word])),
  bar: () => {
    const bar = vp.make("div", {className: "vp-filter"});
    const field = (name, text, control) => {
      bar.append(vp.make("label", {}, `${text} `, Object.assign(control, {name})));
      return control;
    };
    return {bar, field};
  },
};
