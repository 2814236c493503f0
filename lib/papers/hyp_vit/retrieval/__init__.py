"""Notebook 22: metric learning (section 3.3, Tables 2 and 3)."""
