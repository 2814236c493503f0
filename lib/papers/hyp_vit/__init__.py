"""Hyperbolic Vision Transformers: a pairwise cross-entropy over distances in the Poincaré ball."""

TITLE = "Hyp-ViT"
"""The name for people; notebooks, stages and folders carry that of this folder."""
