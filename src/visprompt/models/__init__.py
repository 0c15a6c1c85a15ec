"""The frozen backbones: the one loop over their blocks, files of weights, the embedded networks and
how they were trained."""
