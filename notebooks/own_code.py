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
# Your network, your pictures, your training loop: each part of this package can be taken alone, with `import visprompt as
# vp` (`pip install .` in a clone installs it). The page runs in about a minute and downloads nothing. Its
# pictures are drawings and its networks are small, so the accuracies say nothing about a paper.

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
# frozen copy. The name is what records and saved files say; `mean` and `std` are the normalisation of pixels in [0, 1].
# Models of Hugging Face's own classes cannot be loaded; timm has its own ViT, DINOv2 and CLIP towers.

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
# `vp.make_task` takes anything with a length and integer indexing: torchvision's data sets, a split of a Hugging Face data set,
# or a list. An entry is a pair of picture and label, or a mapping. The columns `image` or `img`, and `label` or
# `fine_label`, are found; others are named with `columns`. A `Subset` keeps the classes of its whole. Each picture has one
# class; pictures with several labels are refused.

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
# `vp.search` fits the method once for each combination of a grid and ranks the tries on the validation images. Test images
# are not looked at. Without a grid it tries 0.2, 1 and 5 times the method's own learning rate. The model that comes back is
# the best one, fitted.

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
# A callback gets each epoch's number, the training loss, and the accuracy on the validation images; training ends where it
# returns True. For TensorBoard its line is `writer.add_scalars("fit", values, epoch)`, for Weights & Biases
# `wandb.log(values, step=epoch)`. The schedule was made for all epochs, so stopping early also leaves out its slow end.


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
# Any function of logits and labels stands in for the cross-entropy: here with class weights and smoothed labels. What a
# method adds to the loss stays.

# %%
weights = len(task.train[1]) / (task.classes * task.train[1].bincount(minlength=task.classes))
loss = torch.nn.CrossEntropyLoss(weight=weights, label_smoothing=0.1)
values = vp.fit(model, task, vp.Recipe(epochs=2), loss=loss)
print(f"test accuracy {values['test']:.1f} %")

# %% [markdown]
# ## Your own loop
#
# A model is a `torch.nn.Module` from normalised images to logits. Four calls are easily forgotten: `vp.standardise` before
# the first step, so that one learning rate for the head suits every network; `training_loss`, which adds the method's own
# term; `after_epoch`, which some methods need; and `vp.name_classes`, after which `vp.predict` works.

# %%
model = vp.build_method("vpt-deep", backbone, task.classes, prompt_tokens=10)
pictures, labels = vp.normalise(task.train[0], backbone.mean, backbone.std), task.train[1]
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
# `vp.export` writes one graph. It takes pixels of 0 to 255: normalisation is inside, and the standardisation is folded into
# the head's weights. The names of the classes travel as metadata. A file name that ends in `.onnx` gives the same graph for
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
# `vp.save_method` writes the prompts, the head and what they belong to: a safetensors file of some kilobytes. Plain PyTorch
# reads it. Apart from saving and normalising, these lines do not use this package: at each block the prompts go behind the
# class token, and what comes out in their places is dropped.

# %%
from safetensors import safe_open

vp.save_method(model, f"{folder}/places.safetensors")
plain = backbone.model  # timm's network; elsewhere timm.create_model with the same weights
file = safe_open(f"{folder}/places.safetensors", "pt")
tensors = {key: file.get_tensor(key) for key in file.keys()}
x = plain._pos_embed(plain.patch_embed(vp.normalise(task.test[0][:3], (0.5,) * 3, (0.5,) * 3)))
for index, block in enumerate(plain.blocks):
    prompts = tensors[f"method.prompts.{index}"].expand(len(x), -1, -1)
    x = block(torch.cat([x[:, :1], prompts, x[:, 1:]], 1))
    x = torch.cat([x[:, :1], x[:, 1 + prompts.shape[1] :]], 1)
features = (plain.norm(x)[:, 0] - tensors["feature_mean"]) / tensors["feature_scale"]
logits = features @ tensors["head.weight"].T + tensors["head.bias"]
print("largest difference from the graph:", f"{(logits - scores).abs().max():.0e}")
print(json.loads(file.metadata()["visprompt"])["settings"])

# %% [markdown]
# ## Beside other packages
#
# What we read in November 2026: peft's page on prompt tuning and its [issue 1563](https://github.com/huggingface/peft/issues/1563);
# the [table of models](https://docs.adapterhub.ml/model_overview.html) of adapters; the options of torchvision's
# [training script](https://github.com/pytorch/vision/blob/main/references/classification/train.py). What we did not look up
# is marked "not checked".
#
# | What | this package | peft | adapters | torchvision's script |
# |---|---|---|---|---|
# | Prompts at a ViT's input | VPT-Shallow, SPT-Shallow | asked for in issue 1563, which is closed; prompt tuning is described for language models | prompt tuning for ViT | no |
# | Prompts in every block | VPT-Deep, SPT-Deep, iVPT, DA-VPT and others | prefix tuning, described for language models | prefix tuning for ViT | no |
# | Prompts on pixels, activation prompts | VP, AP | not checked | not in its table | no |
# | LoRA, adapters | yes | LoRA, not checked for adapters | yes | no |
# | Networks | timm's ViT, Swin and ResNet | Hugging Face's, not checked for timm's | Hugging Face's ViT, BEiT and CLIP; others by a plug-in | torchvision's |
# | Full fine-tuning | yes | not checked | not checked | yes |
# | Label smoothing, class weights, own loss | a function given to `vp.fit` | not checked | not checked | label smoothing |
# | Mixup, cutmix, moving average of weights | no | not checked | not checked | yes |
# | Resuming a broken fit | no: a fit of these methods is short | not checked | not checked | yes |
# | Learning rate searched on validation images | `vp.search` | not checked | not checked | no |
# | Several processes | no: one device per fit | not checked | not checked | yes |
# | A record of each run | `vp.tune` | not checked | not checked | a checkpoint per epoch |
#
# ## What next
#
# - [](methods.ipynb): every method with its picture, its equation and its code.
# - [](../your-images.md): a folder of your own pictures, on the command line.
# - [](../which-method.md): which method for a budget.

# %% tags=["remove-output", "remove-input"]
page.close()
