"""Sliders for teaching: each moves a pure plot function and the same state in numbers beside the picture."""
