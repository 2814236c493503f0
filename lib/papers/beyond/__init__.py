"""What belongs to no single paper."""

TITLE = "Beyond the papers"
"""The name for people; notebooks, stages and folders carry that of this folder."""
