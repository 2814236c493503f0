"""Notebook 16: flat control, leakage, galleries, switches."""
