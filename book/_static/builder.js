// The command builder: a study, a profile, tasks, methods and seeds as lines for a shell.
document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(".vp-builder").forEach((box) => {
  const studies = JSON.parse(box.querySelector("script").textContent);
  const out = box.querySelector("pre"), {bar: controls, field} = vp.bar();
  const named = (words) => ({"": "all", ...vp.same(words)});
  const study = field("study", "Study", vp.select()), profile = field("profile", "Profile", vp.select());
  const task = field("task", "Task", vp.select()), method = field("method", "Method", vp.select());
  const seeds = field("seeds", "Seeds", vp.number(3, 1, 5));
  const page = field("page", "Chapter", vp.select()), device = field("device", "Device", vp.select());
  vp.fill(study, vp.same(Object.keys(studies)), "benchmark");
  vp.fill(device, {cpu: "CPU", cuda: "one GPU"});
  const list = (words) => `'[${words.join(", ")}]'`;
  const show = () => {
    const {title, pages, papers, runs} = studies[study.value];
    vp.fill(profile, vp.same(Object.keys(runs)));
    vp.fill(task, named(runs[profile.value].tasks));
    vp.fill(method, named(runs[profile.value].methods));
    vp.fill(page, pages);
    page.disabled = !page.options.length;
    if (!seeds.checkValidity()) return;
    const numbers = [...Array(seeds.valueAsNumber).keys()], whole = profile.value === "paper", paper = papers[page.value] || "";
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
      // as make hands them over: a list of one text, since snakemake reads a bare 0 or 2024 as a number
      const config = [["papers", paper], ["seeds", numbers.join(" ")], ["tasks", task.value], ["methods", method.value],
        ["data_dir", "FOLDER"]].filter(([, value]) => value).map(([name, value]) => `"${name}=['${value}']"`).join(" ");
      const machine = device.value === "cuda" ? " DEVICE=cuda GPUS=1" : "";
      lines.push(
        ...whole ? ["# the chapters of its paper with such runs of every study, and the site",
          ["make book PROFILE=paper", `PAPERS=${paper}`, `SEEDS="${numbers.join(" ")}"`, ...asked, "DATA=FOLDER"].join(" ") + machine,
          "# the same on a cluster with Slurm",
          `.venv/bin/snakemake --profile profiles/slurm --config profile=paper device=${device.value} ${config}`]
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
