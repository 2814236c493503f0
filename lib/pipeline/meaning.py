"""What each parameter of a notebook may be.

Those that the library has too stand in :mod:`lib.checks`, on which every training depends; what only notebooks have
stands here, so that a new notebook trains nothing anew.
"""

from functools import partial
from reprlib import repr as shortened
from typing import Any

from lib import checks
from lib.errors import InputError


def name(parameter: str, value: Any) -> None:
    """Refuse all but text with something in it."""
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{parameter} = {shortened(value)} cannot be used: it must be a name")


MEANING: dict[str, checks.Check] = checks.MEANING | {
    **dict.fromkeys(("decoder_epochs", "decoder_batch", "end_to_end_epochs", "n_novel", "repeats"), checks.whole),
    "decoder_lr": checks.positive,
    **dict.fromkeys(("end_to_end_rates", "classifier_rates"), partial(checks.several, each=checks.positive)),
    **dict.fromkeys(("n_choosing", "n_tried", "resize"), checks.whole),
    "choosing_steps": partial(checks.whole, least=0),  # 0: as many as the trainings take
    "end_to_end": partial(checks.several, each=name, least=0),  # settings of a head; without any, heads alone learn
    **dict.fromkeys(("turn_decoders", "published_rates", "curved"), checks.switch),
    "novel": partial(checks.several, each=name, least=0),  # datasets; without any, pictures are drawn
}
"""Parameter → the check that refuses a value without meaning."""
