"""The words of profiles, evidence and verdicts, written once."""

PROFILES = ("quick", "paper")
EVIDENCE = ("derived", "measured", "trend", "replicated")
WEAKEST_FIRST = ("trend", "measured", "derived", "replicated")  # what is shown in several ways counts as the weakest
VERDICTS = ("agrees", "disagrees", "inconclusive")
WORST_FIRST = ("disagrees", "inconclusive", "agrees")
NOT_RUN = "not run"  # in the place of either
