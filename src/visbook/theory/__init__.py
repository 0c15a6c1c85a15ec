"""The two papers' toy models and AP's Proposition 1: synthetic data, exact statements, nothing but
torch."""
