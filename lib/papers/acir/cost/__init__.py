"""Notebook 35: what ACIR costs, Table 7."""
