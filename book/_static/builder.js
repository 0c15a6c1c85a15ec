// The command builder: a study, a profile, tasks, methods and seeds as lines for a shell.
document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(".vp-builder").forEach((box, number) => {
  const {studies, papers} = JSON.parse(box.querySelector("script").textContent);
  const out = box.querySelector("pre"), controls = document.createElement("div");
  controls.className = "vp-filter";
  const field = (name, text, control) => {
    const label = document.createElement("label");
    label.textContent = `${text} `;
    Object.assign(control, {name, id: `vp-builder-${number}-${name}`});
    label.append(control);
    controls.append(label);
    return control;
  };
  const select = () => document.createElement("select");
  const fill = (list, options, kept = list.value) => {
    list.replaceChildren(...Object.entries(options).map(([value, text]) => new Option(text, value)));
    if (Object.hasOwn(options, kept)) list.value = kept;
  };
  const named = (words) => Object.fromEntries([["", "all"], ...words.map((word) => [word, word])]);
  const study = field("study", "Study", select()), profile = field("profile", "Profile", select());
  const task = field("task", "Task", select()), method = field("method", "Method", select());
  const seeds = field("seeds", "Seeds", Object.assign(document.createElement("input"), {type: "number", min: 1, max: 9, value: 3}));
  const paper = field("paper", "Chapter", select()), device = field("device", "Device", select());
  fill(study, Object.fromEntries(Object.keys(studies).map((name) => [name, name])), "benchmark");
  fill(paper, papers);
  fill(device, {cpu: "CPU", cuda: "one GPU"});
  const list = (words) => `'[${words.join(", ")}]'`;
  const show = () => {
    const entry = studies[study.value];
    fill(profile, Object.fromEntries(Object.keys(entry).filter((name) => name !== "title").map((name) => [name, name])));
    fill(task, named(entry[profile.value].tasks));
    fill(method, named(entry[profile.value].methods));
    if (!seeds.checkValidity()) return;
    const numbers = [...Array(seeds.valueAsNumber).keys()], whole = profile.value === "paper";
    const where = whole ? " --data-dir FOLDER" : "", on = device.value === "cuda" ? " --device cuda" : "";
    const some = (name, control) => control.value ? ` ${name} ${control.value}` : "";
    const recipe = whole && Object.hasOwn(papers, paper.value) ? ` --recipe ${paper.value}` : "";
    const asked = [task.value && `TASKS=${task.value}`, method.value && `METHODS=${method.value}`].filter(Boolean);
    const machine = `${whole ? " DATA=FOLDER" : ""}${device.value === "cuda" ? " DEVICE=cuda GPUS=1" : ""}`;
    const pairs = [["profile", profile.value], ["device", device.value], ["studies", list([study.value])], ["seeds", list(numbers)]];
    if (task.value) pairs.push(["tasks", list([task.value])]);
    if (method.value) pairs.push(["methods", list([method.value])]);
    if (whole) pairs.push(["data_dir", "FOLDER"]);
    out.textContent = [
      `# ${entry.title}`,
      `visprompt study ${study.value} --profile ${profile.value}${recipe} --seeds ${numbers.join(" ")} --search` +
        `${some("--tasks", task)}${some("--methods", method)}${where}${on}`,
      "# the chapter with these runs, and the site",
      ["make book", `PROFILE=${profile.value}`, `PAPERS=${paper.value}`, `SEEDS="${numbers.join(" ")}"`, ...asked].join(" ") + machine,
      "# the notebook alone",
      `papermill build/ipynb/${paper.value}.ipynb out.ipynb ${pairs.map(([name, value]) => `-p ${name} ${value}`).join(" ")}`,
    ].join("\n");
  };
  box.prepend(controls);
  controls.addEventListener("input", show);
  show();
}));
