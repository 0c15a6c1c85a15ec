"""The website, from executed notebooks, prose, manifests and the audit."""
