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
# # First steps
#
# Load a frozen network and a task, add a method, train it, compare it and save it. You need only the library
# (`pip install .` in a copy of the repository). This page takes about a minute on a CPU and downloads nothing.
#
# The network is this book's own small ViT and the images are drawings, so the accuracies say nothing about a paper.
# [](../which-method.md) compares methods on photographs, and [](../your-images.md) shows how to use your own.

# %% tags=["parameters"]
profile = "quick"
device = "cpu"

# %% tags=["remove-input", "remove-output"]
from visbook.pages.page import Page
from visbook.pages.parameters import Parameters, read_parameters

p = read_parameters(Parameters, globals())
page = Page("first_steps", p)

# %% [markdown]
# ## Look at four images
#
# A task has three splits: train, val and test. Each is a pair of images (N, 3, S, S), uint8, and labels (N,). Here the
# class is the position of a coloured blob, by row and column.

# %% mystnb={"image": {"alt": "Four drawings from the training images, each under the name of its class."}}
import matplotlib.pyplot as plt
import torch

import visprompt as vp

task = vp.load_task("position")
images, labels = task.train
print(len(labels), "training images of", task.size, "pixels,", task.classes, "classes")
fig, axes = plt.subplots(1, 4, figsize=(7, 2))
for ax, image, label in zip(axes, images, labels):
    ax.imshow(image.permute(1, 2, 0))
    ax.set(title=task.class_names[label], xticks=[], yticks=[])

# %% [markdown]
# ## Load, build, count
#
# The backbone stays frozen. A method adds a few trained parameters and a linear head; VPT-Deep adds ten prompt tokens to
# every block. `vp.METHODS` lists all methods.

# %%
backbone = vp.load_backbone("vit_micro_patch4_24", "pretrained", device=device)
model = vp.build_method("vpt-deep", backbone, task.classes, prompt_tokens=10)
print(vp.count_parameters(model))

# %% [markdown]
# ## Train, and plot the loss
#
# Each method has a default learning rate, which was chosen on validation images. Five epochs keep this page short; the
# default is fifteen.

# %% mystnb={"image": {"alt": "A line through five points: VPT-Deep's training loss falls from epoch to epoch."}}
recipe = vp.Recipe(epochs=5)
result = vp.fit(model, task, recipe, seed=0)
print(f"test accuracy {result['test']:.1f} %")
fig, ax = plt.subplots(figsize=(5, 2.6))
ax.plot(range(1, len(result["loss"]) + 1), result["loss"], marker="o")
ax.set(xlabel="epoch", ylabel="training loss", title="VPT-Deep learns the task")
ax.set_xticks(range(1, len(result["loss"]) + 1))
plt.show()

# %% [markdown]
# ## Compare three methods
#
# We compare on the same task, epochs and seed; each method has its own learning rate. A linear probe trains the head
# alone, and VP adds one learned perturbation to the image.

# %%
found = {"vpt-deep": (model, result)}
for slug in ("linear-probe", "vp"):
    other = vp.build_method(slug, backbone, task.classes)
    found[slug] = other, vp.fit(other, task, recipe, seed=0)
for slug, (fitted, values) in found.items():
    parameters = vp.count_parameters(fitted)["method"]
    print(f"{slug:13}{parameters:7,} parameters {values['test']:6.1f} %")

# %% [markdown]
# ## Predict, save, load
#
# A saved method contains its own parameters and the head, not the backbone.

# %%
import tempfile

from PIL import Image

pictures = [Image.fromarray(image.permute(1, 2, 0).numpy()) for image in task.test[0][:3]]
path = f"{tempfile.mkdtemp()}/position.safetensors"
vp.save_method(model, path)
print(vp.predict(vp.load_method(path, backbone), pictures).to_string(index=False))

# %% [markdown]
# ## A training loop of your own
#
# A model maps normalised images to logits, and `training_loss` is the cross-entropy plus any loss that the method adds.
# One step is easily forgotten: call `vp.standardise` before training, as `vp.fit` does. It scales the features that enter
# the head to mean 0 and standard deviation 1, so that one learning rate for the head suits every network.


# %%
def normalised(images):
    mean, std = (
        torch.tensor(v, device=device).view(-1, 1, 1) for v in (backbone.mean, backbone.std)
    )
    return (images.to(device) / 255 - mean) / std


def own_loop(model, epochs=5):
    groups = [{"params": model.head.parameters(), "lr": 0.02}]
    groups.append({"params": model.method_parameters(), "lr": 0.01})
    optimizer, order = torch.optim.AdamW(groups, weight_decay=0), torch.Generator().manual_seed(0)
    steps = epochs * len(labels.split(32))
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(epochs):
        for batch in torch.randperm(len(labels), generator=order).split(32):
            loss = model.training_loss(
                model.features(model.below(normalised(images[batch]))), labels[batch].to(device)
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()


model = vp.build_method("vpt-deep", backbone, task.classes, prompt_tokens=10)
vp.standardise(model, images)
own_loop(model)
with torch.no_grad():
    right = model(normalised(task.test[0])).argmax(1).cpu() == task.test[1]
print(f"test accuracy {100 * right.float().mean():.1f} %")

# %% [markdown]
# ## What next
#
# - [](methods.ipynb): every method with a drawing, its equation and its code.
# - [](../which-method.md): which method suits your budget.
# - [](../your-images.md): your own folder of images.
# - [](own_code.ipynb): your own network, data set and training loop.

# %% tags=["remove-output", "remove-input"]
page.close()
