"""Which trained weights are not on this machine, of the backbones of Table I and of any other network of timm."""

from timm.models import get_pretrained_cfg

from lib.encoders import zoo
from lib.encoders.models import MODELS
from lib.encoders.weights import Source, local_file, missing


def wanting(name: str) -> str | None:
    """How large the weights of a network are and how to get them; None if they are on this machine.

    name: of :data:`lib.encoders.models.MODELS`, or of timm with the tag of the weights.

    Raises RuntimeError for a name that timm does not know.
    """
    if name in MODELS:
        return zoo.wanting(name)
    source = Source(name, get_pretrained_cfg(name, allow_unregistered=False))
    return None if local_file(source) else str(missing(source, "they do not come with this project"))
