"""The frozen backbones: the loop over their blocks, weight files, and the embedded networks."""
