"""Notebook 11: the Poincaré ball (section 2.2)."""
