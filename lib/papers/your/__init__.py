"""What notebook 93 shows of somebody's own images; :mod:`lib.archive` tries the methods and decides."""

TITLE = "Your archive"
"""The name for people; notebooks, stages and folders carry that of this folder."""
