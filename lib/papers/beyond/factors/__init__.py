"""Notebook 90: what the encoder, the head, the labels and the curvature earn."""
