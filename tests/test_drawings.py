"""What the drawings assert, and that a method built otherwise would be seen."""

from conftest import small_vit, tiny_task

from visbook.chapters.figure_claims import clusters, token_starts
from visprompt.methods.da_vpt import Method
from visprompt.training.recipe import Recipe


def test_starts_of_spt():
    found = token_starts(small_vit(), tiny_task(), prompt_tokens=3, images=8)
    assert found["distance"] < 1e-5
    assert (found["outside"], found["encoder"], found["frozen"]) == (0, 0, 0)


def test_a_start_that_is_no_token_is_seen(monkeypatch):
    from visprompt.methods.spt_deep import Method as Deep

    entering = Deep.entering
    monkeypatch.setattr(
        Deep, "entering", lambda self, index: entering(self, index) + (index == 2) * 0.1
    )
    assert token_starts(small_vit(), tiny_task(), prompt_tokens=3, images=8)["distance"] > 1e-3


def test_clusters_of_da_vpt(monkeypatch):
    settings = dict(prompt_tokens=2, epochs=3)
    found = clusters(small_vit(), tiny_task(), Recipe(epochs=3, batch_size=8), **settings)
    assert found == {"empty": [0, 0, 0, 0], "updates": 1.0}

    def all_on_one(self):
        self.cluster.zero_()
        self.sums = None

    monkeypatch.setattr(Method, "after_epoch", all_on_one)
    assert clusters(small_vit(), tiny_task(), Recipe(epochs=3, batch_size=8), **settings)["empty"][
        1:
    ] == [1, 1, 1]
