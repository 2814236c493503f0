"""How far a rebuild may deviate from the committed numbers."""

SHARE = 0.03
"""A rebuilt number may deviate from the committed one by this share of the largest number of its table."""
