"""Notebook 20: the pairwise cross-entropy and its space (sections 2.1, 2.2 and 2.4)."""
