"""What the caption of a figure says that draws the intervals of several tests."""

UNCORRECTED = (
    "Intervals are not corrected for the number of tests, verdicts are: an interval that leaves out 0 does not make a "
    "difference clear."
)
