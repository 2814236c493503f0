"""Hyperbolic Vision Transformers: a pairwise cross-entropy over distances in the Poincaré ball."""
