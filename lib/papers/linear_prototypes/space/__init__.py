"""Notebook 43: the space of the embeddings (section III-D)."""
