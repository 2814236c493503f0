"""How far a rebuild may deviate from the committed numbers."""

SHARE = 0.01
"""A rebuilt number may deviate from the committed one by this share of the largest number of its column.

With the pins of :mod:`lib.pins` every step of ``reports/bench/bits.md`` gave the same bits on all processors that were
tried; the share is for other processors, and for steps that are not among those.
"""
