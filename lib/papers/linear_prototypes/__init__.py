"""Linear prototypes: a short head on frozen foundation models, with few labels."""

TITLE = "Linear prototypes"
"""The name for people; notebooks, stages and folders carry that of this folder."""
