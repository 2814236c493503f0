"""Notebook 12, the mapper and its loss (sections 2.2 to 3.2): where heads begin, and a grid of heads for sliders."""
