"""What is switched on and off: the rows of Table 2 and their networks (Sections 3.2 and 4.2)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lib.losses.acir import StructureAware
from lib.losses.hashing import CSQ, DCH, QSMIH
from lib.training.acir import Design
from lib.training.sweep import Loss

CNN, VIT, HYBRID = "CNN", "ViT", "Hybrid"
PRETRAINED, UNTRAINED, TOKEN = "pretrained stem", "untrained stem", "ViT feature"
"""What a network looks at: feature maps of the encoder, those of the same encoder untrained, a ViT's class token."""
CAUCHY, STRUCTURE, PLAIN, UNWEIGHTED = "Cauchy", "L_WSC", "L_WSC, labels alone", "L_SC + α L_Q"
DRAWN = "demo_vit"
"""The vision transformer that comes with this project: drawn tiles alone have taught it."""
OURS = (STRUCTURE, PLAIN, UNWEIGHTED)
"""Losses with an α."""


@dataclass(frozen=True)
class Row:
    """A row of Table 2: a network, its loss, and whether ties are broken by content.

    loss: a key of :func:`losses`. eye: one of the three above. like: name of the row whose learning rate it takes.
    """

    name: str
    design: Design
    loss: str
    content: bool = False
    eye: str = PRETRAINED
    like: str = ""

    @property
    def printed(self) -> bool:
        """Whether it may be a row of the paper's table, which never parts its loss, nor ConvMSA from DaRF.

        Of DaRF's two directions (AC-24) it is the printed one.
        """
        return self.loss not in (PLAIN, UNWEIGHTED) and self.design.windows and self.design.queries == "deep"

    @property
    def rate(self) -> str:
        """The row whose learning rate this one has: its own, if it is like no other."""
        return self.like or self.name


def whose(beside: str) -> str:
    """Which network the rows of :data:`VIT` are, for a caption.

    >>> whose("uni2_h"), whose("demo_vit")
    ('ViT: uni2_h', 'ViT: demo_vit, a small one that drawn tiles alone have taught')
    """
    return f"{VIT}: {beside}" + (", a small one that drawn tiles alone have taught" if beside == DRAWN else "")


FULL = "ACIR"
"""All parts together."""
WITHOUT = f"{FULL} without "
PLAIN_RANKING = f"{WITHOUT}CGR"
TURNED = f"{FULL}, DaRF with shallow queries"
"""The direction of the sentence beside Equation 9, and of the authors' code (AC-24)."""


def switched_on(design: Design) -> list[Row]:
    """The rows of Table 2 in the paper's order; the last one is :data:`FULL`."""
    plain = replace(design, pit=False, fusion=False, kan=False)
    hybrid, fused = replace(plain, pit=True), replace(plain, pit=True, fusion=True)
    return [
        Row(CNN, plain, CAUCHY),
        Row(f"{CNN} + L_WSC", plain, STRUCTURE),
        Row(VIT, plain, CAUCHY, eye=TOKEN),
        Row(f"{VIT} + L_WSC", plain, STRUCTURE, eye=TOKEN),
        Row(HYBRID, hybrid, CAUCHY),
        Row(f"{HYBRID} + L_WSC", hybrid, STRUCTURE),
        Row(f"{HYBRID} + L_WSC + DaRF", fused, STRUCTURE),
        Row(PLAIN_RANKING, design, STRUCTURE),
        Row(FULL, design, STRUCTURE, content=True, like=PLAIN_RANKING),
    ]


def switched_off(design: Design) -> list[Row]:
    """:data:`FULL` without one part at a time; without content-guided ranking is among :func:`switched_on`.

    Each has a learning rate of its own, but without KAN it is a row of :func:`switched_on`. Without DaRF nothing reads
    what ConvMSA makes, so that both are gone; ConvMSA is taken out alone as well. The last row is no less than
    :data:`FULL`: its DaRF has the other direction.
    """
    fused = f"{HYBRID} + L_WSC + DaRF"
    return [
        Row(f"{WITHOUT}L_WSC", design, CAUCHY, content=True),
        Row(f"{WITHOUT}fingerprints", design, PLAIN, content=True),
        Row(f"{WITHOUT}class weights", design, UNWEIGHTED, content=True),
        Row(f"{WITHOUT}PiT", replace(design, pit=False), STRUCTURE, content=True),
        Row(f"{WITHOUT}DaRF", replace(design, fusion=False), STRUCTURE, content=True),
        Row(f"{WITHOUT}ConvMSA", replace(design, windows=False), STRUCTURE, content=True),
        Row(f"{WITHOUT}KAN", replace(design, kan=False), STRUCTURE, content=True, like=fused),
        Row(TURNED, replace(design, queries="shallow"), STRUCTURE, content=True),
    ]


def pretraining(design: Design) -> list[Row]:
    """The networks of Table 4 that are no vision transformers, at one length of code: CSQ on a CNN, and ACIR."""
    plain = replace(design, pit=False, fusion=False, kan=False)
    rows = [Row(f"CSQ, {eye}", plain, "CSQ", eye=eye) for eye in (UNTRAINED, PRETRAINED)]
    return [
        *rows,
        Row(f"{FULL}, {UNTRAINED}", design, STRUCTURE, content=True, eye=UNTRAINED),
        Row(f"{FULL}, {PRETRAINED}", design, STRUCTURE, content=True, like=PLAIN_RANKING),
    ]


def long_codes(design: Design, lengths: Sequence[int]) -> list[Row]:
    """QSMIH on a CNN and ACIR at every length (Table 5), each at its rate for ``design.bits``."""
    plain, known = replace(design, pit=False, fusion=False, kan=False), f"QSMIH, {design.bits} bits"
    rows = [Row(f"QSMIH, {bits} bits", replace(plain, bits=bits), "QSMIH", like=known) for bits in lengths]
    like = {"content": True, "like": PLAIN_RANKING}
    return rows + [Row(f"{FULL}, {bits} bits", replace(design, bits=bits), STRUCTURE, **like) for bits in lengths]


def losses(
    alpha: float,
    fingerprint: int,
    n_classes: int,
    bits: int,
    class_weights: tuple[float, ...],
    quantisation: str = "ours",
) -> dict[str, Loss]:
    """The losses of this notebook by name; ``alpha``, ``fingerprint``, ``class_weights``, ``quantisation``: ACIR's."""
    ours = StructureAware(alpha, quantisation, fingerprint=fingerprint, class_weights=class_weights)
    return {
        CAUCHY: DCH(),
        STRUCTURE: ours,
        PLAIN: replace(ours, fingerprint=0),
        UNWEIGHTED: replace(ours, class_weights=()),
        "CSQ": CSQ(n_classes, bits),
        "QSMIH": QSMIH(),
    }


LAYER = "one layer"
"""Ours: one linear layer on the pooled map of all channels, as notebook 31 trains it; see :mod:`.opponents`."""


@dataclass(frozen=True)
class Step:
    """What a part earns: the row ``first`` has it, ``second`` does not. where: on, off, or ours, an opponent."""

    part: str
    where: str
    first: str
    second: str


def steps(names: Iterable[str]) -> list[Step]:
    """Every comparison that is tested: those of Table 2, each part taken out again, and opponents of the whole.

    >>> [step.part for step in steps(["CNN", "CNN + L_WSC", "Hybrid"])]
    ['L_WSC (CNN)', 'PiT (hybrid over CNN)']
    """
    fused = f"{HYBRID} + L_WSC + DaRF"
    off = ("L_WSC", "fingerprints", "class weights", "PiT", "DaRF", "ConvMSA", "KAN")
    known = [
        Step("L_WSC (CNN)", "on", f"{CNN} + L_WSC", CNN),
        Step("L_WSC (ViT)", "on", f"{VIT} + L_WSC", VIT),
        Step("L_WSC (hybrid)", "on", f"{HYBRID} + L_WSC", HYBRID),
        Step("PiT (hybrid over CNN)", "on", HYBRID, CNN),
        Step("hybrid over ViT", "on", HYBRID, VIT),
        Step("DaRF", "on", fused, f"{HYBRID} + L_WSC"),
        Step("KAN", "on", PLAIN_RANKING, fused),
        Step("CGR", "on", FULL, PLAIN_RANKING),
        *(Step(part, "off", FULL, f"{WITHOUT}{part}") for part in off),
        Step("DaRF as printed, over shallow queries", "ours", FULL, TURNED),
        Step("all but CGR, over CNN", "ours", PLAIN_RANKING, CNN),
        *(Step(f"all but CGR, over {name}", "ours", PLAIN_RANKING, name) for name in (layer(CAUCHY), layer(STRUCTURE))),
    ]
    there = set(names)
    return [step for step in known if {step.first, step.second} <= there]


def layer(loss: str) -> str:
    """The name of :data:`LAYER` trained with that loss."""
    return f"{LAYER}, {loss}"
