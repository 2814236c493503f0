"""ACIR: hash codes, novelty and content-guided ranking (Nan et al., Medical Image Analysis 2025)."""
