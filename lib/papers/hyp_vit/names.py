"""What the methods of section 3.3 are called, in tables and figures."""

NONE, NCA, LINEAR = "no head", "NCA", "linear classifier"
HYP, SPH, PRINTED = "Hyp", "Sph", "Sph, τ as printed"
FLAT, UNCLIPPED, INSIDE = "flat", "Hyp, not clipped", "Hyp, begun inside"
END = ", end to end, "
"""Between the kind of head and the place, head or encoder."""
BEFORE = "before training, encoder"
"""The encoder that trainings end to end begin with, on images of their size."""
