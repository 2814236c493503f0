"""Notebook 32: what each part of ACIR earns, Tables 2, 4 and 5 and the choice of α."""
