"""How the embedded networks were trained."""
