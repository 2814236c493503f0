"""What a column of features is divided by, so that no column decides a distance because it hardly varied in training.

Behind a ReLU a feature may be near 0 in all training images but one. Divided by that deviation, the first other image
that has it lies thousands of deviations out, and its distances say nothing but this.
"""

import warnings

import numpy as np

from lib.errors import InputError

HARDLY = 0.01
"""Of the median column's deviation: what varies less counts as constant, so that no column is magnified over 100 times
more than the median one.

Of 60 or 140 images of seven sets (EfficientNet-Lite0, drawn tiles and real ones, 40 draws each, four of five to learn
from) the largest scaled number of another image was above 1,000 in 2 to 40 % of the draws, and 99,993 at most. Now it
is in one set (5 %, 1,145 at most); with 0.001 it still reached 2,068. Precision at 5 rose by 0.0 to 0.5 points with 60
images. With a whole set it moved by 0.3 at most, and not at all for the demo's main encoder, which has no such column.
Units differ by less: the texture descriptor's least column has 0.04.
"""


def widths(deviation: np.ndarray) -> np.ndarray:
    """What to divide centred columns by, (d,), from the ``deviation: (d,)`` of each over the training images.

    Infinity where a column is constant or hardly varies (:data:`HARDLY`), so that it is 0 for every image, and neither
    whitening nor a discriminant analysis can blow it up again. Of columns that hardly vary a warning says how many
    there are. Raises InputError for NaN, infinity and negative numbers.

    >>> widths(np.array([2.0, 4.0, 0.0]))
    array([ 2.,  4., inf])
    """
    if not (usable := (deviation >= 0) & np.isfinite(deviation)).all():
        column = usable.argmin()
        raise InputError(
            f"feature {column} has the deviation {deviation[column]} in the training images: its numbers are NaN, "
            "infinite or too large; mend what they were computed from"
        )
    varies = deviation > 0
    median = np.median(deviation[varies]) if varies.any() else 0.0
    hardly = varies & (deviation < HARDLY * median)
    if hardly.any():
        least = np.where(hardly, deviation, np.inf).argmin()
        warnings.warn(
            f"{hardly.sum()} of {len(deviation):,} features hardly vary in the training images and count as constant, "
            f"least of all number {least}: its deviation is {deviation[least]:.2g}, the median {median:.2g}.",
            stacklevel=1,  # always this line, so that Python says the same of one fold once
        )
    return np.where(varies & ~hardly, deviation, deviation.dtype.type(np.inf))
