"""Hyper-DINO: a hyperbolic mapper on PCA and NCA features of DINO."""

TITLE = "Hyper-DINO"
"""The name for people; notebooks, stages and folders carry that of this folder."""
