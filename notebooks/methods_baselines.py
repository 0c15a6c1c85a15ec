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
# # The methods: baselines
#
# Train only the head, all weights, or the few parameters of biases and normalisation layers.
#
# [How to read the pictures and the costs](methods.ipynb) is on the first page about methods.

# %% tags=["parameters"]
profile = "quick"
device = "cpu"

# %% tags=["hide-input", "remove-output"]
from IPython.display import HTML, display

from visbook.chapters import method_checks
from visbook.chapters.methods import BACKBONE, MethodsPage, cost
from visbook.pages.parameters import Parameters, read_parameters

p = read_parameters(Parameters, globals())
page = MethodsPage("methods_baselines", p)

# %% [markdown]
# (method-linear-probe)=
# ## Linear probe (`linear-probe`)
#
# *SPT, Eq. 3:*
#
# $$ \mathbf{y} = \mathrm{Head}(\mathbf{x}_L) $$
#
# Only the head is trained, on the features of the frozen backbone. They are the same in every epoch, so they are computed
# once and cached. Unless a recipe says otherwise, the head of every method sees features standardised with the mean and
# standard deviation that they have on the training set before training.

# %% name="linear-probe" tags=["hide-input"]
page.method("linear-probe", "Linear probe: nothing before the head is trained.")

# %% [markdown]
# (method-full-finetune)=
# ## Full fine-tuning (`full-finetune`)
#
# *AP, Section 3, with all weights free:*
#
# $$ \min_{\theta} \; \frac{1}{|\mathcal{D}|} \sum_{(x, y) \in \mathcal{D}} \ell(f_\theta(x); y) $$
#
# A copy of the whole backbone is trained with the head. timm's own classifier is not part of it, nor of the counts.

# %% name="full-finetune" tags=["hide-input"]
page.method("full-finetune", "Full fine-tuning: every weight is trained.")

# %% [markdown]
# (method-bias)=
# ## BIAS (`bias`)
#
# *No equation in the papers (AP, Section 6.1; DA-VPT, Section 2.5):*
#
# $$ h = W x + b + \Delta b $$
#
# The biases of linear and normalisation layers are trained {cite}`zaken2021`. The code learns the differences $\Delta b$,
# initialised to zero. The papers do not say which biases belong to the method. By default we train all of them, including
# those of the patch embedding and the last norm; `categories` selects some, such as DA-VPT's `("key", "value")`. Of these,
# [the key's bias does nothing](method-key-bias).

# %% name="bias" tags=["hide-input"]
page.method("bias", "BIAS: a trained change of the bias b of every layer.")

# %% [markdown]
# (method-norm-tune)=
# ## NORM-TUNE (`norm-tune`)
#
# *AP, Eq. A3:*
#
# $$ \mathrm{LN}(z^{(l)}_{b,d,p}) = \gamma_d \, \frac{z^{(l)}_{b,d,p} - \mu_{b,p}}{\sigma_{b,p}} + \beta_d $$
#
# The scales $\gamma$ and shifts $\beta$ of all normalisation layers are trained {cite}`basu2023`: the LayerNorms of a
# transformer, the BatchNorms of a ResNet. A ResNet's running means and variances change as well, because its backbone is in
# training mode.

# %% name="norm-tune" tags=["hide-input"]
page.method("norm-tune", "NORM-TUNE: scale and shift of every normalisation layer.")

# %% [markdown]
# (method-key-bias)=
# ## A key bias does nothing
#
# A bias $b$ of the keys adds the same $q_i \cdot b$ to every score of query $i$, and softmax ignores a constant that all its
# inputs share:
#
# $$ \frac{\exp(q_i \cdot (k_j + b) / \sqrt{d})}{\sum_m \exp(q_i \cdot (k_m + b) / \sqrt{d})} =
# \frac{\exp(q_i \cdot k_j / \sqrt{d})}{\sum_m \exp(q_i \cdot k_m / \sqrt{d})}. $$
#
# So it changes no output and has no gradient. This holds for BIAS and, because prompts pass the same projection, for
# DA-VPT+. DA-VPT says that the biases of keys and values are the most efficient ones (Section 2.5); the gain must come from
# the values alone. It would not hold if keys were normalised after the projection, nor for E²VPT's $P_K$, which has no
# bias.

# %% name="key-bias" tags=["hide-input"]
measured = method_checks.biases()
page.table(
    method_checks.bias_rows(measured),
    "What random biases do to the logits.",
    [measured],
    "Random biases with standard deviation 1 in every block of a ViT-S/16 with random weights; two random images, float64.",
)
plus, values = (
    cost("da-vpt-plus").values["method"],
    cost("da-vpt-plus", biases=("value",)).values["method"],
)
display(
    HTML(
        f"<p>On {BACKBONE}, {plus - values:,} of the {plus:,} parameters that DA-VPT+ trains besides the head are key "
        "biases.</p>"
    )
)

# %% [markdown]
# ## Try it
#
# The other methods of this page are `"linear-probe"`, `"full-finetune"` and `"norm-tune"`. {ref}`What this call does
# <try-it>`.

# %% name="try-it"
from visbook.chapters.try_it import try_it

try_it("bias")

# %% tags=["remove-output", "remove-input"]
page.close()
