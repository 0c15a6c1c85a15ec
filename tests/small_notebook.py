# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # A small notebook
#
# The mean distance is $\rho = \frac{1}{P}$ {cite}`raghu2021`.

# %% tags=["parameters"]
profile = "quick"

# %%
import matplotlib.pyplot as plt
import pandas as pd

from visbook.pages.page import Page
from visbook.pages.parameters import Parameters, read_parameters
from visprompt.records import recorded

settings = read_parameters(Parameters, globals())
page = Page("ap_theory", settings)
run = recorded("test", {"seed": 0}, lambda: {"distance": 0.25})

# %% [markdown]
# (ap.lemma-1)=
# ## Lemma 1: Attention distance shrinks after one layer
#
# $$\rho_1 = \frac{1 + d_A}{P} + \sum_{i=1}^{n} a_i b_i + c_1 + c_2 + c_3 + c_4 + c_5 + c_6 + c_7 +
# c_8$$

# %% name="ap.lemma-1" tags=["hide-input"]
figure, axes = plt.subplots()
axes.plot([1, 0.25])
page.show(
    "ap.lemma-1",
    figure,
    evidence="derived",
    how="Counted.",
    caption="A line",
    alt="A falling line",
    records=[run],
)
wide = pd.DataFrame({f"a wide column {i}": [run.values["distance"]] for i in range(12)})
lines = {f"P = {n}": plt.subplots(figsize=(n / 4, 2))[0] for n in (8, 16, 32)}
page.show(
    "ap.lemma-1",
    lines,
    evidence="derived",
    how="Counted.",
    caption="Lines",
    alt="A line",
    records=[run],
)
page.show(
    "ap.lemma-1", wide, evidence="trend", how="Counted.", caption="A wide table", records=[run]
)

# %% [markdown]
# (ap.theorem-1)=
# ## Theorem 1

# %% name="ap.theorem-1"
page.not_run(
    "ap.theorem-1", command="make notebook NAME=ap_theory " + "x" * 90, why="It takes hours."
)

# %%
page.close()
