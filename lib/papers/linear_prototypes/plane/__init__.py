"""Notebook 40: prototypes in a plane (sections II-B and II-C)."""
