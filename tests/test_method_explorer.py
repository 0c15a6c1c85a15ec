"""The method explorer says what counting says, at any number of prompts and classes."""

from functools import cache

import pytest

import visprompt as vp
from visbook.chapters import method_explorer as explorer
from visprompt.measure.cost import count_flops, training_memory
from visprompt.methods import METHODS

VIT = "vit_base_patch16_224"
SHAPES = vp.load_backbone(VIT, device="meta")


@cache
def counts(slug):
    return explorer.counts(slug, VIT)


def built(slug, tokens, classes):
    more = {"prompt_tokens": tokens} if explorer.takes_prompts(slug) else {}
    return vp.build_method(slug, SHAPES, classes, **more)


@pytest.mark.parametrize("slug", METHODS)
def test_what_is_counted_at_three_numbers_holds_at_others(slug):
    for tokens, classes in ((1, 2), (33, 70)):
        model, found = built(slug, tokens, classes), explorer.cost_at(counts(slug), tokens, classes)
        counted = vp.count_parameters(model)
        assert (found["method"], found["total"]) == (counted["method"], counted["total"])
    assert found["flops"] == count_flops(model)["flops"]
    # weights, gradients, moments; logits
    head = 4 * (4 * (SHAPES.width + 1) + explorer.BATCH) * (explorer.CLASSES - 70)
    assert found["memory"] == pytest.approx(
        training_memory(model, explorer.BATCH)["total"] + head, rel=1e-3
    )


def test_a_method_without_prompts_costs_the_same_at_any_number():
    assert not explorer.takes_prompts("bias") and explorer.takes_prompts("vpt-deep")
    assert explorer.cost_at(counts("bias"), 1, 10) == explorer.cost_at(counts("bias"), 500, 10)
