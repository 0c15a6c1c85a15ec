"""What is measured on a model: cost, similarity of features, attention."""
