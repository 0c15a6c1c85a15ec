# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Use it in your own code
#
# Your network, your pictures, your training loop: you can use each part of this package alone, after `import visprompt
# as vp` (`pip install .` in a clone installs it). The page runs in about a minute and downloads nothing. Its pictures
# are drawings and its networks are small, so the accuracies say nothing about a paper.

# %% tags=["parameters"]
profile = "quick"
device = "cpu"

# %% tags=["remove-input", "remove-output"]
from visbook.pages.page import Page
from visbook.pages.parameters import Parameters, read_parameters

p = read_parameters(Parameters, globals())
page = Page("own_code", p)

# %% [markdown]
# ## Your own network
#
# `vp.load_backbone` takes a timm ViT, Swin or ResNet as an object: with your weights, at your image size. It works on a
# frozen copy. Records and saved files contain the `name`; `mean` and `std` normalise pixels in [0, 1].
# Models of Hugging Face's own classes cannot be loaded. timm has the same releases under other names:
#
# | Hugging Face's name | timm's name (of CLIP: the image encoder) |
# |---|---|
# | `google/vit-base-patch16-224-in21k` | `vit_base_patch16_224.orig_in21k` |
# | `google/vit-base-patch16-224` | `vit_base_patch16_224.orig_in21k_ft_in1k` |
# | `facebook/vit-mae-base` | `vit_base_patch16_224.mae` |
# | `facebook/dino-vitb16` | `vit_base_patch16_224.dino` |
# | `facebook/dinov2-base` | `vit_base_patch14_dinov2.lvd142m` |
# | `facebook/deit-base-patch16-224` | `deit_base_patch16_224.fb_in1k` |
# | `openai/clip-vit-base-patch16` | `vit_base_patch16_clip_224.openai` |
# | `microsoft/swin-base-patch4-window7-224-in22k` | `swin_base_patch4_window7_224.ms_in22k` |
#
# The pairs follow what timm names as the source of each checkpoint; we have not compared the weights.
# The names of other sizes follow the same pattern.

# %%
import timm
import torch

import visprompt as vp

network = timm.create_model("vit_tiny_patch16_224", img_size=24, patch_size=4, depth=3)
own = vp.load_backbone(network, name="my_vit", mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))
print(own.name, own.family, own.depth, "blocks of width", own.width, "at", own.image_size, "pixels")
images = torch.randn(2, 3, 24, 24)
with torch.no_grad():
    features = network.eval().forward_head(network.forward_features(images), pre_logits=True)
    print("largest difference from timm:", f"{(own(images) - features).abs().max():.0e}")

# %% [markdown]
# ## Your own pictures
#
# `vp.make_task` takes anything with a length and integer indexing: torchvision's data sets, a split of a Hugging Face
# data set, or a list. An entry is a pair of picture and label, or a mapping. The columns `image` or `img`, and `label`
# or `fine_label`, are found; name others with `columns`. A `Subset` keeps the classes of the full data set. Each
# picture has one class; pictures with several labels are refused.
#
# `make_task` reads each picture once and keeps it as 3 · side² bytes, at the size used for training. A split of more
# than 64 MiB is kept in a file in the cache folder (`VISPROMPT_CACHE`), and only the part in use is in memory. The file
# is deleted with the task. With `VISPROMPT_CACHE=none` everything is in memory. Augmentation starts from the kept size.

# %%
drawn = vp.load_task("position")


def entries(split):
    pictures, labels = split
    return [
        {"img": picture.permute(1, 2, 0).numpy(), "coarse_label": int(label), "number": number}
        for number, (picture, label) in enumerate(zip(pictures, labels))
    ]


names = drawn.class_names
task = vp.make_task(
    "places",
    train=entries(drawn.train),
    val=entries(drawn.val),
    test=entries(drawn.test),
    columns=("img", "coarse_label"),
    class_names=list(names),
    image_size=24,
)
print(task.classes, "classes;", len(task.train[1]), "pictures to train on; first:", names[0])

# %% [markdown]
# ## Search a learning rate
#
# `vp.search` fits the method once for each combination of a grid and ranks the fits by `val`, the validation accuracy
# in %. It does not use the test images. Without a grid it tries 0.2, 1 and 5 times the method's default learning rate.
# It returns the table and the best model, fitted.

# %%
backbone = vp.load_backbone("vit_micro_patch4_24", "pretrained", device=device)
grid = {"learning_rate": [0.002, 0.01], "prompt_tokens": [2, 10]}
tries, model = vp.search("vpt-deep", backbone, task, grid, vp.Recipe(epochs=2))
print(tries.to_string(index=False))
print(f"the best one on test images: {vp.evaluate(model, task):.1f} %")

# %% [markdown]
# The same on the command line, for a folder of pictures:
#
# ```console
# $ visprompt fit pictures --search --set prompt_tokens=10 --image-size 24
# ```
#
# ## Watch the training, and stop it
#
# A callback gets each epoch's number, the training loss and the validation accuracy; training ends when it returns
# True. To log to TensorBoard, let it call `writer.add_scalars("fit", values, epoch)`, for Weights & Biases
# `wandb.log(values, step=epoch)`. The learning rate schedule is made for all epochs, so stopping early also leaves out
# its last steps with a low learning rate.


# %%
def enough(epoch, values):
    print(
        f"epoch {epoch}: loss {values['loss']:.2f}, {values['val']:.1f} % of the validation images"
    )
    return values["val"] > 85


model = vp.build_method("vpt-deep", backbone, task.classes, prompt_tokens=10)
values = vp.fit(model, task, vp.Recipe(epochs=10), callback=enough)
print(f"epochs before it stopped: {len(values['loss'])}; {values['test']:.1f} % of the test images")

# %% [markdown]
# ## Your own loss
#
# Any function of logits and labels can replace the cross-entropy. Terms that a method adds to the loss stay. Class
# weights and label smoothing are a line each:

# %%
weights = len(task.train[1]) / (task.classes * task.train[1].bincount(minlength=task.classes))
losses = {
    "class weights": torch.nn.CrossEntropyLoss(weight=weights.to(device)),
    "label smoothing": torch.nn.CrossEntropyLoss(label_smoothing=0.1),
}
for name, loss in losses.items():
    values = vp.fit(model, task, vp.Recipe(epochs=2), loss=loss)
    print(f"{name}: test accuracy {values['test']:.1f} %")

# %% [markdown]
# Several labels for one picture are not supported, and are refused when the task is made:

# %%
entry = entries(drawn.test)[0]
try:
    vp.make_task("several", [(entry["img"], [0, 1])] * 5, [(entry["img"], [0, 1])])
except vp.BadInput as error:
    print(error)

# %% [markdown]
# `vp.tune` gives a record and no model; `vp.fit` gives the model and no record. Calling both trains the same run twice, so
# call `vp.fit` alone if you want the model. An interrupted fit cannot be resumed; it starts again.

# %% [markdown]
# ## Your own loop
#
# A model is a `torch.nn.Module` from normalised images to logits. Four calls are easily forgotten: `vp.standardise` before
# the first step, so that one learning rate for the head suits every network; `training_loss`, which adds the method's own
# term; `after_epoch`, which some methods need; and `vp.name_classes`, after which `vp.predict` works.

# %%
model = vp.build_method("vpt-deep", backbone, task.classes, prompt_tokens=10)
pictures, labels = (tensor.to(device) for tensor in task.train)
pictures = vp.normalise(pictures, backbone.mean, backbone.std)
vp.standardise(model, task.train[0])
groups = [{"params": model.head.parameters(), "lr": 0.02}, {"params": model.method_parameters()}]
optimizer = torch.optim.AdamW(groups, lr=0.01, weight_decay=0)
for epoch in range(3):
    for batch in torch.randperm(len(labels)).split(32):
        loss = model.training_loss(model.features(model.below(pictures[batch])), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.method.after_epoch()
    print(f"epoch {epoch + 1}: {vp.evaluate(model, task, 'val'):.1f} % of the validation images")
vp.name_classes(model, task)

# %% [markdown]
# ## Take it elsewhere: a graph
#
# `vp.export` writes one graph. It takes pixels from 0 to 255: the graph normalises them, and the standardisation is folded
# into the head's weights. The class names are stored as metadata. A file name that ends in `.onnx` gives the same graph for
# ONNX Runtime, with the metadata in `metadata_props`; that needs the packages `onnx` and `onnxscript`.

# %%
import json
import tempfile

folder = tempfile.mkdtemp()
vp.export(model, f"{folder}/places.pt2")
about = {"visprompt.json": ""}
graph = torch.export.load(f"{folder}/places.pt2", extra_files=about).module()
facts = json.loads(about["visprompt.json"])
scores = graph(task.test[0][:3].float())
print([json.loads(facts["class_names"])[i] for i in scores.argmax(1)], facts["method"])

# %% [markdown]
# ## Take it elsewhere: a few tensors
#
# `vp.save_method` writes the prompts, the head and the settings to a safetensors file of some kilobytes. Plain PyTorch
# reads it. Apart from saving and normalising, these lines do not use this package: each block gets the prompts behind the
# class token, and their outputs are dropped.

# %%
from safetensors import safe_open

vp.save_method(model, f"{folder}/places.safetensors")
plain = backbone.model  # timm's network; elsewhere timm.create_model with the same weights
file = safe_open(f"{folder}/places.safetensors", "pt")
tensors = {key: file.get_tensor(key).to(device) for key in file.keys()}
x = vp.normalise(task.test[0][:3].to(device), (0.5,) * 3, (0.5,) * 3)
x = plain._pos_embed(plain.patch_embed(x))
for index, block in enumerate(plain.blocks):
    prompts = tensors[f"method.prompts.{index}"].expand(len(x), -1, -1)
    x = block(torch.cat([x[:, :1], prompts, x[:, 1:]], 1))
    x = torch.cat([x[:, :1], x[:, 1 + prompts.shape[1] :]], 1)
features = (plain.norm(x)[:, 0] - tensors["feature_mean"]) / tensors["feature_scale"]
logits = features @ tensors["head.weight"].T + tensors["head.bias"]
print("largest difference from the graph:", f"{(logits.cpu() - scores).abs().max():.0e}")
print(json.loads(file.metadata()["visprompt"])["settings"])

# %% [markdown]
# ## Studies of your own
#
# A study is a grid of methods, tasks and seeds. Outside the repository, write it in a file `own_studies.yaml` in your
# working folder. It names networks and tasks as the book's own studies do (`data_manifests/studies.yaml`):
#
# ```yaml
# studies:
#   mine:
#     title: how many prompts
#     backbones: [supervised]
#     tasks: benchmark
#     variants:
#       2 prompts: {method: vpt-deep, prompt_tokens: 2}
#       20 prompts: {method: vpt-deep, prompt_tokens: 20}
# ```
#
# ```console
# $ visprompt study mine --seeds 0 1 2 --search
# $ visprompt study mine --tasks pictures --data-dir data --search
# $ visprompt runs --study mine
# ```
#
# The second line runs it on pictures of your own, in `data/pictures`. Records are written to `build/records` in your
# working folder. A notebook reads them with `vp.runs(study="mine")`; papermill runs it with other parameters (`-y
# 'seeds: [0]'`). This needs both packages: `pip install . ./src/visbook`.
#
# ## Beside other packages
#
# In November 2026 we read the code of [peft](https://github.com/huggingface/peft) 0.21.2 and its
# [issue 1563](https://github.com/huggingface/peft/issues/1563); the code of [adapters](https://github.com/adapter-hub/adapters)
# 1.3.0, its [table of models](https://docs.adapterhub.ml/model_overview.html) and its
# [page on training](https://docs.adapterhub.ml/training.html); torchvision's
# [training script](https://github.com/pytorch/vision/blob/main/references/classification/train.py), which is not part of
# the package and has no version.
#
# | What | this package | peft | adapters | torchvision's script |
# |---|---|---|---|---|
# | Prompts at a ViT's input | VPT-Shallow, SPT-Shallow | no: asked for in issue 1563, now closed; prompt tuning is for language models | prompt tuning for ViT and BEiT | no |
# | Prompts in every block | VPT-Deep, SPT-Deep, iVPT, DA-VPT and others | no; prefix tuning, which adds keys and values, is for language models | prefix tuning for ViT, BEiT and CLIP | no |
# | Prompts on pixels, activation prompts | VP, AP | no | no | no |
# | LoRA | yes | yes, with over 20 relatives | yes, with relatives | no |
# | Bottleneck adapters | Adapter, AdaptFormer | no | yes | no |
# | Tuned biases, norms, scales | BIAS, norm tuning, SSF | biases (BEFT), layer norms, scales (IA3) | scales (IA3) | no |
# | Networks | timm's ViT, Swin and ResNet | any PyTorch network for LoRA and its relatives, timm's among them | Hugging Face's ViT, BEiT and CLIP; others by a plug-in | torchvision's |
# | Full fine-tuning, linear probe | yes | left to your loop | left to your loop | full fine-tuning |
# | Training loop | `vp.fit`, or your own | your own, or Hugging Face's Trainer | a Trainer of its own, or your own | its own |
# | Label smoothing, class weights, own loss | a function given to `vp.fit` | as your loop has them | as your loop has them | label smoothing |
# | Mixup, cutmix, moving average of weights | no | as your loop has them | as your loop has them | yes |
# | Resuming an interrupted fit | no | as your loop has it | as Trainer has it | yes |
# | Several processes | no: one device per fit | as your loop has them | as Trainer has them | yes |
# | Learning rate searched on validation images | `vp.search` | no | no | no |
# | Several tuned modules in one network, by name | no: one file per task, on one backbone | yes | yes, also stacked and fused | no |
# | Folded into the plain weights | `vp.merged`, where a method allows it | yes, for LoRA and most relatives | LoRA, IA3 | not needed |
# | A record of each run | `vp.tune` | no | no | a checkpoint per epoch |
#
# ## What next
#
# - [](methods.ipynb): every method with its picture, its equation and its code.
# - [](../your-images.md): train on a folder of your own pictures from the command line.
# - [](../which-method.md): which method suits your budget.

# %% tags=["remove-output", "remove-input"]
page.close()
