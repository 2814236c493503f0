"""Climbing the Label Tree: a contrastive loss weighted by kinship, and margins between the groups of every level."""

TITLE = "Label tree"
"""The name for people; notebooks, stages and folders carry that of this folder."""
