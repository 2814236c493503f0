"""What is switched on and off: the rows of Tables 2, 4 and 5 and their losses (Sections 3.2 and 4.2)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lib.losses.acir import StructureAware
from lib.losses.hashing import CSQ, DCH, QSMIH
from lib.training.acir import Design
from lib.training.sweep import Loss

CNN, VIT, HYBRID, FULL = "CNN", "ViT", "Hybrid", "ACIR"
PRETRAINED, UNTRAINED, TOKEN = "pretrained stem", "untrained stem", "ViT feature"
"""What a network sees: feature maps of the encoder, those of the same encoder untrained, a ViT's class token."""
CAUCHY, STRUCTURE, PLAIN, UNWEIGHTED = "Cauchy", "L_WSC", "L_WSC, labels alone", "L_SC + α L_Q"
OURS = (STRUCTURE, PLAIN, UNWEIGHTED)
"""Losses with an α."""
FUSED, WITHOUT = f"{HYBRID} + L_WSC + DaRF", f"{FULL} without "
PLAIN_RANKING = f"{WITHOUT}CGR"
TURNED = f"{FULL}, DaRF with shallow queries"
"""The direction of the sentence about Equation 9, and of the authors' code (AC-24)."""
LAYER = "one layer, {}"
"""One linear layer on the pooled map of all channels, as notebook 31 trains it, with this loss."""


@dataclass(frozen=True)
class Row:
    """A network, its loss (a key of :func:`losses`), and whether ties are broken by content.

    eye: what it sees. like: name of the row whose learning rate it takes.
    """

    name: str
    design: Design
    loss: str
    content: bool = False
    eye: str = PRETRAINED
    like: str = ""

    @property
    def rate(self) -> str:
        """The row whose learning rate this one has: its own, if it is like no other."""
        return self.like or self.name


def plain(design: Design) -> Design:
    """The network without its parts: a mean, and two layers."""
    return replace(design, pit=False, fusion=False, kan=False)


def switched_on(design: Design) -> list[Row]:
    """The rows of Table 2 in the paper's order; the last one is :data:`FULL`."""
    cnn = plain(design)
    hybrid, fused = replace(cnn, pit=True), replace(cnn, pit=True, fusion=True)
    return [
        Row(CNN, cnn, CAUCHY),
        Row(f"{CNN} + L_WSC", cnn, STRUCTURE),
        Row(VIT, cnn, CAUCHY, eye=TOKEN),
        Row(f"{VIT} + L_WSC", cnn, STRUCTURE, eye=TOKEN),
        Row(HYBRID, hybrid, CAUCHY),
        Row(f"{HYBRID} + L_WSC", hybrid, STRUCTURE),
        Row(FUSED, fused, STRUCTURE),
        Row(PLAIN_RANKING, design, STRUCTURE),
        Row(FULL, design, STRUCTURE, content=True, like=PLAIN_RANKING),
    ]


def switched_off(design: Design) -> list[Row]:
    """:data:`FULL` without one part at a time, each at a rate of its own but without KAN; and with DaRF turned.

    Without DaRF nothing reads what ConvMSA makes, so that both are gone; ConvMSA is taken out alone as well.
    """
    return [
        Row(f"{WITHOUT}L_WSC", design, CAUCHY, content=True),
        Row(f"{WITHOUT}fingerprints", design, PLAIN, content=True),
        Row(f"{WITHOUT}class weights", design, UNWEIGHTED, content=True),
        Row(f"{WITHOUT}PiT", replace(design, pit=False), STRUCTURE, content=True),
        Row(f"{WITHOUT}DaRF", replace(design, fusion=False), STRUCTURE, content=True),
        Row(f"{WITHOUT}ConvMSA", replace(design, windows=False), STRUCTURE, content=True),
        Row(f"{WITHOUT}KAN", replace(design, kan=False), STRUCTURE, content=True, like=FUSED),
        Row(TURNED, replace(design, queries="shallow"), STRUCTURE, content=True),
    ]


def pretraining(design: Design) -> list[Row]:
    """The networks of Table 4 that are no vision transformers, at one length of code: CSQ on a CNN, and ACIR."""
    return [
        *(Row(f"CSQ, {eye}", plain(design), "CSQ", eye=eye) for eye in (UNTRAINED, PRETRAINED)),
        Row(f"{FULL}, {UNTRAINED}", design, STRUCTURE, content=True, eye=UNTRAINED),
        Row(f"{FULL}, {PRETRAINED}", design, STRUCTURE, content=True, like=PLAIN_RANKING),
    ]


PRETRAINING_PAIRS = [
    (f"CSQ, {PRETRAINED}", f"CSQ, {UNTRAINED}"),
    (f"{FULL}, {PRETRAINED}", f"{FULL}, {UNTRAINED}"),
    (f"{FULL}, {UNTRAINED}", f"CSQ, {UNTRAINED}"),
    (f"{FULL}, {PRETRAINED}", f"CSQ, {PRETRAINED}"),
]


def long_codes(design: Design, lengths: Sequence[int]) -> list[Row]:
    """QSMIH on a CNN and ACIR at every length (Table 5), each at its rate for ``design.bits``."""
    cnn, like = plain(design), f"QSMIH, {design.bits} bits"
    rows = [Row(f"QSMIH, {bits} bits", replace(cnn, bits=bits), "QSMIH", like=like) for bits in lengths]
    ours = {"content": True, "like": PLAIN_RANKING}
    return rows + [Row(f"{FULL}, {bits} bits", replace(design, bits=bits), STRUCTURE, **ours) for bits in lengths]


def candidates(design: Design) -> list[Row]:
    """End to end: every loss on the network without its parts, and ACIR, which comes last."""
    by_name = {"CSQ": "CSQ", "DCH": CAUCHY, "QSMIH": "QSMIH", f"{CNN} + L_WSC": STRUCTURE}
    rows = [Row(name, plain(design), loss) for name, loss in by_name.items()]
    return [*rows, Row(FULL, design, STRUCTURE, content=True)]


def losses(
    alpha: float, fingerprint: int, n_classes: int, bits: int, weights: tuple[float, ...], quantisation: str = "ours"
) -> dict[str, Loss]:
    """The losses by name; ``alpha``, ``fingerprint``, class ``weights`` and ``quantisation`` are ACIR's."""
    ours = StructureAware(alpha, quantisation, fingerprint=fingerprint, class_weights=weights)
    own = {STRUCTURE: ours, PLAIN: replace(ours, fingerprint=0), UNWEIGHTED: replace(ours, class_weights=())}
    return {CAUCHY: DCH(), **own, "CSQ": CSQ(n_classes, bits), "QSMIH": QSMIH()}
