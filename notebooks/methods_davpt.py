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
# # The methods: prompts guided by classes (DA-VPT)
#
# Two additional losses tie prompts to classes. Our versions of the paper's drawings {cite}`davpt` have their printed names.
#
# [How to read the pictures and the costs](methods.ipynb) is on the first page about methods.

# %% tags=["parameters"]
profile = "quick"
device = "cpu"

# %% tags=["hide-input", "remove-output"]
from visbook.chapters import method_checks
from visbook.chapters.methods import MethodsPage
from visbook.pages.parameters import Parameters, read_parameters

p = read_parameters(Parameters, globals())
page = MethodsPage("methods_davpt", p)

# %% [markdown]
# (davpt.figure-1)=
# ## DA-VPT, Figure 1: DA-VPT against VPT-Deep, idea
#
# The classification loss alone does not tell a prompt which patches to collect information from. DA-VPT assigns classes to
# each prompt, so that the class token can collect information from the prompt of its class. The picture shows the idea;
# [](davpt_parts.ipynb) measures whether trained prompts behave like this.

# %% name="davpt.figure-1" tags=["hide-input"]
page.counterpart(
    "davpt.figure-1",
    "davpt.figure-1",
    "The idea of DA-VPT; markers are groups of classes.",
    how="A drawing of the paper's idea, made by code; nothing is measured.",
)

# %% [markdown]
# (davpt.figure-2)=
# (method-da-vpt)=
# ## DA-VPT (`da-vpt`), Figure 2 of its paper
#
# *DA-VPT, Eq. 4:*
#
# $$ \mathcal{L}_{\text{ML}}(\mathbf{x}, \mathbf{p}) = \frac{1}{|P^+|} \sum_{p_k \in P^+}
# \mathrm{LSE}_0^+\!\left(-\frac{\hat{p}_k \cdot \hat{x}_i - \delta}{\tau}\right) + \frac{1}{|P|} \sum_{p_k \in P}
# \mathrm{LSE}_0^+\!\left(\frac{\hat{p}_k \cdot \hat{x}_j + \delta}{\tau}\right) $$
#
# *DA-VPT, Eq. 5:*
#
# $$ \mathcal{L} = \mathcal{L}_{CE} + \beta \, \mathcal{L}_{\text{ML}}(\mathbf{x}, \mathbf{p}) + \lambda \,
# \mathcal{L}_{\text{ML}}(\mathbf{p}, \mathbf{x}_{cls}) $$
#
# A hat normalises a vector to length 1, $\delta$ is a margin, $\tau$ a temperature, and $\mathrm{LSE}_0^+$ is
# $\log(1 + \sum \exp)$ over the patches $x_i$ of the prompt's own classes, or $x_j$ of other classes. $P$ are the guided
# prompts, $P^+$ those with a class in the batch; $\beta$ and $\lambda$ are the weights of the two losses.
#
# VPT-Deep's prompts are trained with two additional proxy-anchor losses {cite}`kim2020`. k-means over class means assigns
# classes to each prompt of a guided block; it is repeated after every epoch, from the last centroids. The released code
# divides the first sum by $|P|$ instead of $|P^+|$ (`normaliser="all"`). Two settings say what is compared: the prompts'
# queries or the prompts (`projection`), and the output of attention or the input of the block (`patches`).
#
# The paper does not say how the losses of several guided blocks are combined; we average them. A ViT without a class token
# has only the first loss. The released code also prevents prompts from attending to the class token and to each other.
# Since Eq. 1 discards the prompts' outputs, that changes no logit. A training step needs the attention of all patches in
# the last block, which is counted below. Inference costs as much as VPT-Deep's.

# %% name="davpt.figure-2" tags=["hide-input"]
page.method(
    "da-vpt", "DA-VPT: classes, their prompts, and the losses that link them.", "davpt.figure-2"
)

# %% name="davpt-drawings" tags=["hide-input"]
kept_busy = method_checks.davpt_clusters()
told = "ten prompts, 40 classes, five epochs, one seed"
page.checked(
    f"Prompts without a class after clustering, largest number in any epoch ({told})",
    max(kept_busy.values["empty"]),
)
page.checked(
    "Number of clusterings divided by the number of epochs, minus 1",
    abs(kept_busy.values["updates"] - 1),
)

# %% [markdown]
# (method-da-vpt-plus)=
# ## DA-VPT+ (`da-vpt-plus`)
#
# *No equation; DA-VPT, Section 2.5 and Table 4:*
#
# $$ [x_{cls} + \Delta, \mathbf{p}, \mathbf{x}], \qquad K + \Delta b_K, \qquad V + \Delta b_V $$
#
# DA-VPT that also trains the biases of key and value projections ("the most efficient part") and the class token. `biases`
# selects other categories, and `class_token=False` leaves out the class token. The released code also trains the first
# LayerNorm, which the paper does not mention; we keep it frozen. {ref}`The key's bias does nothing <method-key-bias>`.

# %% name="da-vpt-plus" tags=["hide-input"]
page.method(
    "da-vpt-plus", "DA-VPT+: DA-VPT's prompts, biases of keys and values, and the class token."
)

# %% [markdown]
# (davpt.theorem-1)=
# ## DA-VPT, Theorem 1: First-order change of an attention weight
#
# The theorem says that a small change $\Delta p$ of a prompt changes its attention weight $a_i$ on patch $v_i$ by
#
# $$ \Delta a_i \approx a_i (1 - a_i) \, \Delta s_i, \qquad \Delta s_i = \Delta p^\top v_i / \sqrt{d}. $$
#
# The proof uses $\partial a_i / \partial s_i$, as if only the score of that patch changed. But $s_j = p^\top v_j / \sqrt{d}$
# for every patch, so moving $p$ changes all scores, and to first order
# $\Delta a_i = a_i \bigl(\Delta s_i - \sum_j a_j \, \Delta s_j\bigr)$. A first-order approximation has an error that shrinks
# with the square of the step. That is true of the theorem when a single score changes. When the prompt moves, the error
# shrinks only in proportion to the step, like the change itself.
#
# The paper concludes that the weight on a patch rises if $\Delta p^\top v_i > 0$. A step straight towards a patch raised its
# weight in all random cases that we tried. A step that only satisfies the printed condition does not always do so, because
# other patches may gain more, especially if all patches have a common mean.

# %% name="davpt.theorem-1" tags=["hide-input"]
theorem = method_checks.first_order()
page.show(
    "davpt.theorem-1",
    method_checks.draw_errors(theorem),
    evidence="derived",
    records=[theorem],
    how="Random prompts and 196 random patches of 64 dimensions, one head, float64; means over patches and 10 draws.",
    caption="Error of Theorem 1's formula and of the full first-order formula, by size of the step.",
    alt="Error against the step on logarithmic axes: "
    + "; ".join(
        f"when {name}, the error shrinks with the step to the power {sum(p) / len(p):.2f}"
        for name in ("the prompt moves", "one score moves")
        if (p := method_checks.powers(theorem, name))
    )
    + ".",
)

# %% name="conditions" tags=["hide-input"]
page.present(
    method_checks.first_order_conditions(),
    evidence="derived",
    how="From the text, and from the cases that we tried.",
    caption="The conditions of DA-VPT's Theorem 1. The exponents below belong to the last two rows.",
    cell="conditions",
)

# %% tags=["hide-input"]
moves, alone = (
    method_checks.powers(theorem, name) for name in ("the prompt moves", "one score moves")
)
sign = method_checks.sign()
mean = sum(sign.values["common mean"]) / len(sign.values["common mean"])
random = f"Random Gaussian patches, prompts and steps. If all patches share a mean: {mean:.0f} %. Straight towards the patch: "
random += f"{min(theorem.values['rises']):.0f} %. We did not try trained prompts."
for claim, values, note in (
    ("exponent", moves, "The interval is the range over ten draws."),
    ("exponent-one-score", alone, "The interval is the range over ten draws."),
    ("sign", sign.values["around 0"], random),
):
    page.judge(
        f"davpt.theorem-1.{claim}",
        sum(values) / len(values),
        min(values),
        max(values),
        evidence="derived",
        records=[sign if claim == "sign" else theorem],
        note=note,
    )

# %% [markdown]
# ## Try it
#
# The other method of this page is `"da-vpt"`. {ref}`What this call does <try-it>`.

# %% name="try-it"
from visbook.chapters.try_it import try_it

try_it("da-vpt-plus", prompt_tokens=10)

# %% tags=["remove-output", "remove-input"]
page.close()
