// The command builder: a study, a profile, tasks, methods and seeds as lines for a shell.
document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(".vp-builder").forEach((box, number) => {
  const studies = JSON.parse(box.querySelector("script").textContent);
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
  const seeds = field("seeds", "Seeds", Object.assign(document.createElement("input"), {type: "number", min: 1, max: 5, value: 3}));
  const page = field("page", "Chapter", select()), device = field("device", "Device", select());
  fill(study, Object.fromEntries(Object.keys(studies).map((name) => [name, name])), "benchmark");
  fill(device, {cpu: "CPU", cuda: "one GPU"});
  const list = (words) => `'[${words.join(", ")}]'`;
  const show = () => {
    const {title, pages, runs} = studies[study.value];
    fill(profile, Object.fromEntries(Object.keys(runs).map((name) => [name, name])));
    fill(task, named(runs[profile.value].tasks));
    fill(method, named(runs[profile.value].methods));
    fill(page, pages);
    page.disabled = !page.options.length;
    if (!seeds.checkValidity()) return;
    const numbers = [...Array(seeds.valueAsNumber).keys()], whole = profile.value === "paper", paper = page.value.split("_")[0];
    const where = whole ? " --data-dir FOLDER" : "", on = device.value === "cuda" ? " --device cuda" : "";
    const some = (name, value) => value ? [`${name} ${value}`] : [];
    const recipe = whole ? some("--recipe", paper) : [];
    const lines = [
      `# ${title}`,
      [`visprompt study ${study.value} --profile ${profile.value}`, ...recipe, `--seeds ${numbers.join(" ")} --search`,
        ...some("--tasks", task.value), ...some("--methods", method.value)].join(" ") + where + on,
    ];
    if (!page.value) lines.push("# AP's pages and the small world's take no study, so there is no line for a notebook");
    else {
      const given = [["studies", list([study.value])], ["seeds", list(numbers)]];
      if (task.value) given.push(["tasks", list([task.value])]);
      if (method.value) given.push(["methods", list([method.value])]);
      if (whole) given.push(["data_dir", "FOLDER"]);
      const options = given.map(([name, value]) => `-p ${name} ${value}`).join(" ");
      const asked = [task.value && `TASKS=${task.value}`, method.value && `METHODS=${method.value}`].filter(Boolean);
      const machine = device.value === "cuda" ? " DEVICE=cuda GPUS=1" : "";
      lines.push(
        ...whole ? ["# the chapters of its paper with such runs of every study, and the site",
          ["make book PROFILE=paper", `PAPERS=${paper}`, `SEEDS="${numbers.join(" ")}"`, ...asked, "DATA=FOLDER"].join(" ") + machine]
          : ["# the notebook with these runs, in build/notebook",
            `make notebook NAME=${page.value} ARGS="${options}"${device.value === "cuda" ? " DEVICE=cuda" : ""}`],
        "# the same by papermill",
        `papermill build/ipynb/${page.value}.ipynb out.ipynb -p profile ${profile.value} -p device ${device.value} ${options}`,
      );
    }
    out.textContent = lines.join("\n");
  };
  box.prepend(controls);
  controls.addEventListener("input", show);
  show();
}));
