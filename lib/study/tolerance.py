"""How far a rebuild may deviate from the committed numbers."""

SHARE = 0.01
"""A rebuilt number may deviate from the committed one by this share of the largest number of its column.

With the pins of :mod:`lib.pins` every step of ``reports/bench/bits.md`` gave the same bits on all processors that were
tried; the share is for other processors, and for steps that are not among those.
"""

ELSEWHERE_SHARE, ELSEWHERE_POINTS = 0.15, 8.0
"""What was trained on another device may deviate by this share of its column's largest, and by so many points anyway.

On a GPU convolutions round to TF32 and sums have another order, so features differ by 0.3 %, and every training goes
its own way. With features of the demo moved by 0.3 %, scores of notebook 13 moved by up to 3.9 points and limits of
intervals by 1.8; in 52, where one training stands for a row, by 9.7 and 5.9.
"""
