"""Notebook 13: retrieval, Tables 1 to 6 and Fig. 3."""
