"""Notebook 21: how tree-like are features? (section 2.3, Table 1)."""
