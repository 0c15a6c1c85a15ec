"""What the page on evidence says of the rule by which a trend is judged."""

from dataclasses import replace

from visbook.site import rule_pages
from visprompt import papers


def results(monkeypatch, estimates: list[float]) -> dict:
    one = next(claim for claim in papers.claims() if claim.direction == "greater")
    claims = [replace(one, id=f"made.{i}", margin=0) for i in range(len(estimates))]
    monkeypatch.setattr(papers, "claims", lambda: claims)
    words = {1: "seen here", 0: "open", -1: "not seen here"}
    return {
        "claims": {
            claim.id: {
                "verdict": words[(value > 2) - (value < -2)],
                "estimate": value,
                "low": value - 2,
                "high": value + 2,
            }
            for claim, value in zip(claims, estimates, strict=True)
        }
    }


def test_chance_is_counted_over_all_that_were_asked(monkeypatch):
    told = rule_pages.chance(results(monkeypatch, [9.0] * 10 + [0.0] * 29 + [2.1]), None)
    assert "Of 40 claims" in told and "11 are seen" in told and "1.0 would be" in told
    assert "10 of the 11 remain" in told  # the one at the edge is what chance gives
    assert "No claim" in rule_pages.chance({"claims": {}}, None)


def test_the_table_shows_what_was_simulated(monkeypatch):
    made = lambda *asked, **more: {"above": asked[0] / 10, "below": 0.09}
    monkeypatch.setattr(rule_pages, "simulated", made)
    shown = rule_pages.power({}, None)
    assert shown.count("<td") == 9 * 7 and "30 %" in shown and "in 9 % of studies" in shown
