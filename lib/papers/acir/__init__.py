"""ACIR: hash codes, novelty and content-guided ranking (Nan et al., Medical Image Analysis 2025)."""

TITLE = "ACIR"
"""The name for people; notebooks, stages and folders carry that of this folder."""
