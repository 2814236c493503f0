"""Notebook 12: mapper and contrastive loss (sections 2.2 and 2.3)."""
