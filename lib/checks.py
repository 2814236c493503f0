"""What a setting may be: a value without meaning is refused in words where it enters, one name means one thing."""

import math
import unicodedata
from collections.abc import Callable, Sequence
from functools import partial
from numbers import Integral, Real
from reprlib import repr as shortened
from typing import Any

import numpy as np

from lib.errors import InputError

LARGEST = 2**31 - 1
"""Of whole numbers: far beyond any size with a meaning, and a seed that every library takes."""

TINY, HUGE = 1.2e-38, 3.4e38
"""Float32, in which everything is trained, holds no smaller positive number to full accuracy, and no larger one."""

ENDS = {16: 65_520.0, 32: HUGE}
"""Bits of a float → from here on it is infinity (the largest of float16 is 65,504, larger ones are rounded)."""

Check = Callable[[str, Any], None]
"""Takes the name of a setting and its value; raises InputError for a value without meaning."""


def whole(name: str, value: Any, least: int = 1, most: int = LARGEST) -> None:
    """Refuse all but a whole number from ``least`` to ``most``; True and 5.0 are none."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise _refused(name, value, f"a whole number from {least} on")
    if value > most:
        raise _refused(name, value, f"at most {most:,}")


def number(name: str, value: Any, least: float = -HUGE, most: float = HUGE) -> None:
    """Refuse all but a finite number from ``least`` to ``most``."""
    if not least <= _real(value) <= most:
        above = "" if least == -HUGE else f" from {least:g}"
        raise _refused(name, value, f"a finite number{above}" if most == HUGE else f"a number{above} to {most:g}")


def positive(name: str, value: Any) -> None:
    """Refuse all but a finite number above 0."""
    if not TINY <= _real(value) <= HUGE:
        raise _refused(name, value, "a finite number above 0")


def fraction(name: str, value: Any) -> None:
    """Refuse all but a number between 0 and 1 that float32 can tell from both."""
    if not 2**-24 <= _real(value) <= 1 - 2**-24:
        raise _refused(name, value, "a number between 0 and 1, and neither of them")


def switch(name: str, value: Any) -> None:
    """Refuse all but True and False."""
    if not isinstance(value, bool):
        raise _refused(name, value, "True or False")


def several(name: str, value: Any, each: Check = whole, least: int = 1) -> None:
    """Refuse all but a list, tuple or array of ``least`` or more values, of which ``each`` refuses none."""
    items = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(items, Sequence) or isinstance(items, str | bytes) or len(items) < least:
        raise _refused(name, value, f"a list of {least} or more values, such as [1, 5]")
    for place, item in enumerate(items):
        each(f"{name}[{place}]", item)


def pair(name: str, value: Any, each: Check) -> None:
    """Refuse all but two values, of which ``each`` refuses none."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise _refused(name, value, "a pair of numbers, such as (0.5, 1.0)")
    several(name, value, each)


def or_word(word: str, otherwise: Check) -> Check:
    """A check that lets ``word`` pass, and asks ``otherwise`` about anything else."""

    def check(name: str, value: Any) -> None:
        if isinstance(value, str) and value == word:
            return
        try:
            otherwise(name, value)
        except InputError as error:
            raise InputError(f"{error}, or {word!r}") from None

    return check


def able(name: str, value: Any, method: str, wanted: str) -> None:
    """Refuse all but an object that has ``method``; the class itself, not called, is none."""
    if isinstance(value, type) or not callable(getattr(value, method, None)):
        raise _refused(name, value, wanted)


not_negative = partial(number, least=0)
share = partial(number, least=0, most=1)
portion = partial(number, least=1e-6, most=1)  # of an image: nothing of it is no crop
two_or_more = partial(whole, least=2)
warm = partial(number, least=1e-6)  # of a temperature: distances are divided by it, and float32 ends
length = or_word("full", whole)

MEANING: dict[str, Check] = {
    # how long, how many, how wide
    **dict.fromkeys(("epochs", "mapper_epochs", "steps", "check_every", "experiments", "batch_size"), whole),
    **dict.fromkeys(("dim_in", "dim_out", "bottleneck"), whole),
    **dict.fromkeys(
        ("k", "support", "views", "n_views", "n_seeds", "per_class", "images_per_class", "folds_used"), whole
    ),
    **dict.fromkeys(("n_folds", "n_classes", "samples", "prototypes", "nca_images"), two_or_more),
    **dict.fromkeys(("n_trainings", "pixels", "n_bits", "end_to_end_batch"), whole),
    "fingerprint_side": two_or_more,
    "radii": partial(several, each=partial(whole, least=0)),
    "draws": two_or_more,
    "size": partial(whole, least=100),  # of a draw: δ of fewer points says little
    **dict.fromkeys(("hidden", "local_crops", "seed"), partial(whole, least=0)),
    **dict.fromkeys(("ks", "supports", "dims", "bits"), several),
    "lengths": partial(several, each=length, least=0),  # the scaled features are always there
    "nca_lengths": partial(several, each=length),
    "labelled": partial(several, each=or_word("all", two_or_more)),  # one image is a support without a query
    # an index
    **dict.fromkeys(("candidates", "lists", "probes"), whole),
    "neighbours": partial(whole, least=2, most=1024),  # FAISS crashes at 1 and 0
    # the loss and its optimiser
    **dict.fromkeys(("temperature", "teacher_temperature", "student_temperature"), warm),
    "temperatures": partial(several, each=warm),
    "clip_radius": positive,
    **dict.fromkeys(("lr", "classifier_lr", "published_lr", "end_to_end_lr", "head_lr"), positive),
    **dict.fromkeys(("weight_decay", "curvature", "m0", "alpha", "gamma", "norm_weight"), not_negative),
    **dict.fromkeys(("margin", "margin_weight", "quantisation"), not_negative),
    **dict.fromkeys(("margins", "rates"), partial(several, each=positive)),
    **dict.fromkeys(("alphas", "gammas"), partial(several, each=not_negative)),
    "delta": fraction,
    "start_norm": not_negative,
    **dict.fromkeys(("stain", "centre_momentum", "prototype_rate"), share),
    "momentum": partial(pair, each=share),
    **dict.fromkeys(("global_area", "local_area"), partial(pair, each=portion)),
    **dict.fromkeys(("half", "self_pairs", "detach_mean", "domain"), switch),
    "geometry": partial(able, method="pairwise", wanted="a geometry, such as PoincareBall(1.0) or Euclidean()"),
    "comparison": partial(able, method="dissimilarity", wanted='a comparison, such as Comparison("cosine")'),
}
"""What each setting may be, in the library as in the parameters of notebooks and in params.yaml."""


def values(**named: Any) -> None:
    """Refuse values without meaning, by the names of :data:`MEANING`.

    >>> values(epochs=100, lr=1e-3)
    >>> values(epochs=0)
    Traceback (most recent call last):
    lib.errors.InputError: epochs = 0 cannot be used: it must be a whole number from 1 on
    """
    for name, value in named.items():
        MEANING[name](name, value)


def within(k: Any, size: int, things: str) -> None:
    """Refuse a k that is no whole number from 1 to ``size``, the number of ``things`` in what is searched.

    >>> within(7, 6, "gallery has 6 items")
    Traceback (most recent call last):
    lib.errors.InputError: k = 7, but the gallery has 6 items: choose 1 to 6
    """
    values(k=k)
    if k > size:
        raise InputError(f"k = {k}, but the {things}: choose 1 to {size}")


def at_hand(numbers: Any) -> bool:
    """Whether values can be looked at without waiting: an array's and a CPU tensor's; a GPU would have to finish first.

    So losses look at labels on the CPU alone; those who take labels to a GPU check them before.
    """
    return getattr(getattr(numbers, "device", None), "type", "cpu") == "cpu"


def codes(what: str, numbers: Any, n: int = LARGEST, there: str = "classes are numbered") -> None:
    """Refuse all but whole numbers from 0 to ``n`` − 1, at least one of them, in an array or a tensor of any shape.

    what: the numbers, in the plural; there: what has ``n`` of something. −1 is pandas' number of a missing label, and
    would count as the last. Short whole numbers of a tensor are refused too: as an index, uint8 would be a mask. The
    values of a tensor on a GPU are not looked at (:func:`at_hand`).

    >>> import numpy as np
    >>> codes("labels", np.array([0, -1]), 3, "there are 3 classes")
    Traceback (most recent call last):
    lib.errors.InputError: the labels run from -1 to 0, but there are 3 classes, from 0 on: leave out what has no label
    """
    if 0 in numbers.shape:
        raise InputError(f"there are no images: the {what} are empty; check how they were chosen")
    kind = str(numbers.dtype)
    if "int" not in kind or (kind.startswith("torch") and kind not in ("torch.int32", "torch.int64")):
        raise InputError(
            f"the {what} are {kind}, which cannot number classes: take labels.long() of a tensor, labels.astype(int) "
            "of an array, and of class names taxonomy.codes(labels)"
        )
    if not at_hand(numbers):
        return
    low, high = int(numbers.min()), int(numbers.max())
    if low < 0 or high >= n:
        way_out = "leave out what has no label" if low == -1 else "number them so"
        raise InputError(f"the {what} run from {low} to {high}, but {there}, from 0 on: {way_out}")


def fits(what: str, largest: float, bits: int, way_out: str) -> None:
    """Refuse to round to a float of 16 or 32 ``bits`` what would become infinite.

    what: the values, in the plural; largest: of their absolute values; way_out: what to do instead.

    >>> fits("weights", 7e4, bits=16, way_out="train with a lower learning rate")
    Traceback (most recent call last):
    lib.errors.InputError: weights are as large as 70000, but float16 ends at 65,504: train with a lower learning rate
    """
    if not largest < ENDS[bits]:
        ends = {16: "65,504", 32: "3.4e38"}[bits]
        raise InputError(f"{what} are as large as {largest:g}, but float{bits} ends at {ends}: {way_out}")


def no_nan(what: str, values: np.ndarray) -> None:
    """Refuse NaN in ``values: (n, ...)``, called ``what``, and name the first row that has it.

    >>> no_nan("the features", np.array([[1.0], [np.nan]]))
    Traceback (most recent call last):
    lib.errors.InputError: the features of row 1 hold NaN: leave it out, or mend what they were computed from
    """
    _no_row(what, np.isnan(values), "NaN")


def finite(what: str, values: np.ndarray) -> None:
    """Refuse NaN and infinity in ``values: (n, ...)``, called ``what``, and name the first row that has one."""
    _no_row(what, ~np.isfinite(values), "NaN or infinity")


def spelled(name: str) -> str:
    """Return a name without spaces at its ends and in one Unicode form, so that equal names are equal text.

    >>> spelled("nv "), spelled("cafe\u0301") == "caf\u00e9"
    ('nv', True)
    """
    return unicodedata.normalize("NFC", name).strip()


def _no_row(what: str, wrong: np.ndarray, kind: str) -> None:
    """Refuse what has a row with ``wrong: (n, ...)`` numbers, which are of that ``kind``."""
    if wrong.any():
        row = np.argwhere(wrong)[0][0]
        raise InputError(f"{what} of row {row} hold {kind}: leave it out, or mend what they were computed from")


def _real(value: Any) -> float:
    """``value`` as a float; NaN for what is no number, as True and text are none."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _refused(name: str, value: Any, wanted: str) -> InputError:
    """The error about ``value``; text that reads like a number gets the reason that it is none."""
    text = f"{name} = {' '.join(shortened(value).split())} cannot be used: it must be {wanted}"
    if isinstance(value, str) and any(sign.isdigit() for sign in value):
        text += "; this is text: write it without quotes, and in YAML 1.0e-5 for 1e-5"
    return InputError(text)
