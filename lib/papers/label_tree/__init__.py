"""Climbing the Label Tree: a contrastive loss weighted by kinship, and margins between the groups of every level."""
