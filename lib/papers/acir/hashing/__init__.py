"""Notebook 31: hash codes, Tables 1, 2 and 6 and Fig. 3."""
