"""Notebook 15: self-distillation of the small encoder."""
