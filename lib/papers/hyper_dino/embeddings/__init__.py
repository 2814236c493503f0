"""Notebook 10: frozen features, scaling, PCA and NCA (section 2.1)."""
