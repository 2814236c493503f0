"""Hyper-DINO: a hyperbolic mapper on PCA and NCA features of DINO."""
