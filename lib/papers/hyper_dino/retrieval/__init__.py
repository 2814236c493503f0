"""Notebook 13: retrieval, Tables 1 to 6 and Fig. 3."""

FAMILIES = {"baseline": "no mapper, Euclidean", "32": "Hyper-DINO(·, 32)", "dim_in": "Hyper-DINO(·, dim_in)"}
