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
# Prompts that stand for classes, by two losses more. The drawings of the paper {cite}`davpt` have their counterparts
# here, under their printed names.
#
# [How to read the pictures and the costs](methods.ipynb) stands on the first page on the methods.

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
# With the classification loss alone, nothing says which patches a prompt should gather from. DA-VPT gives each prompt
# classes to stand for, so that the class token can collect from the prompt of its own. This is the paper's idea,
# drawn; [](davpt_parts.ipynb) measures whether trained prompts behave so.

# %% name="davpt.figure-1" tags=["hide-input"]
page.counterpart(
    "davpt.figure-1",
    "davpt.figure-1",
    "The idea of DA-VPT; markers are groups of classes.",
    how="A drawing made from code, of the paper's idea; nothing is measured.",
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
# A hat divides a vector by its length, $\delta$ is a margin, $\tau$ a temperature, and $\mathrm{LSE}_0^+$ stands for
# $\log(1 + \sum \exp)$ over the patches $x_i$ of the prompt's own classes, or $x_j$ of others. $P$ are the guided
# prompts, $P^+$ those with a class in the batch; $\beta$ and $\lambda$ weigh the two losses.
#
# VPT-Deep's prompts are trained with two more losses, proxy-anchor losses {cite}`kim2020`. k-means over class means
# gives each prompt of a guided block its classes; it is run again after every epoch, from the last centroids. The
# released code divides the first sum by $|P|$ instead of $|P^+|$ (`normaliser="all"`). What is compared is named too:
# the prompts' queries or the prompts (`projection`), and what attention gives or what enters the block (`patches`).
# The paper leaves open how losses of several guided blocks add up; here they are averaged. A ViT
# without a class token has the first loss alone. The released code also
# keeps prompts from attending to the class token and to each other; since Eq. 1 drops what prompts give, that changes
# no logit. A training step looks at the attention of all patches in the last block, which is counted below; inference
# costs what VPT-Deep's does.

# %% name="davpt.figure-2" tags=["hide-input"]
page.method(
    "da-vpt", "DA-VPT: classes, their prompts, and the losses that tie them.", "davpt.figure-2"
)

# %% name="davpt-drawings" tags=["hide-input"]
kept_busy = method_checks.davpt_clusters()
told = "ten prompts, 40 classes, five epochs, one seed"
page.checked(
    f"Prompts without a class after the clustering, the most of any epoch ({told})",
    max(kept_busy.values["empty"]),
)
page.checked(
    "Updates of the mapping over the number of epochs, minus 1",
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
# DA-VPT, the shifts of key and value projections ("the most efficient part"), and the class token; `biases` takes
# other categories and `class_token=False` leaves that one out. The released code also trains the first LayerNorm,
# which the paper does not mention; it stays frozen here. {ref}`The key's shift does nothing <method-key-bias>`.

# %% name="da-vpt-plus" tags=["hide-input"]
page.method(
    "da-vpt-plus", "DA-VPT+: DA-VPT's prompts, shifts of keys and values, and the class token."
)

# %% [markdown]
# (davpt.theorem-1)=
# ## DA-VPT, Theorem 1: First-order change of an attention weight
#
# The theorem says that a small change $\Delta p$ of a prompt changes its attention weight $a_i$ on patch $v_i$ by
#
# $$ \Delta a_i \approx a_i (1 - a_i) \, \Delta s_i, \qquad \Delta s_i = \Delta p^\top v_i / \sqrt{d}. $$
#
# The proof takes $\partial a_i / \partial s_i$, as if the score of that patch moved alone. But $s_j = p^\top v_j /
# \sqrt{d}$ for every patch, so moving $p$ moves all of them, and to first order
# $\Delta a_i = a_i \bigl(\Delta s_i - \sum_j a_j \, \Delta s_j\bigr)$. An approximation of first order leaves an error
# that shrinks with the square of the step. The theorem's does so for a score that moves alone; when the prompt moves,
# its error shrinks only in proportion to the step, as the change itself does. The conclusion that the paper draws is
# that the weight on a patch rises where $\Delta p^\top v_i > 0$. A step straight towards a patch raised it in all random
# cases tried. A step that only keeps the printed condition does not always: others may gain more, the more so where all
# patches have a mean in common.

# %% name="davpt.theorem-1" tags=["hide-input"]
theorem = method_checks.first_order()
page.show(
    "davpt.theorem-1",
    method_checks.draw_errors(theorem),
    evidence="derived",
    records=[theorem],
    how="Random prompts and 196 random patches of 64 dimensions, one head, float64; means over patches and 10 draws.",
    caption="Error of Theorem 1's formula against the step, and of the whole first-order formula.",
    alt="On log axes two lines fall with slope two; the theorem's formula with a moving prompt falls with slope one and "
    "lies far above them.",
)

# %% name="conditions" tags=["hide-input"]
page.present(
    method_checks.first_order_conditions(),
    evidence="derived",
    how="Read off the text and the cases tried.",
    caption="The conditions of DA-VPT's Theorem 1: the exponents below are of the last two rows.",
    cell="conditions",
)

# %% tags=["hide-input"]
moves, alone = (
    method_checks.powers(theorem, name) for name in ("the prompt moves", "one score moves")
)
sign = method_checks.sign()
mean = sum(sign.values["common mean"]) / len(sign.values["common mean"])
random = f"Random Gaussian patches, prompts and steps; with a mean that all patches share, {mean:.0f} %. Straight towards "
random += f"the patch: {min(theorem.values['rises']):.0f} %. Trained prompts were not tried."
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
# The other of this page is `"da-vpt"`. {ref}`What this call does <try-it>`.

# %% name="try-it"
from visbook.chapters.try_it import try_it

try_it("da-vpt-plus", prompt_tokens=10)

# %% tags=["remove-output", "remove-input"]
page.close()
