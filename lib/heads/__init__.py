"""Small trainable modules on frozen features, and the reductions that come before them."""

from lib.heads.mapper import HyperbolicMapper
from lib.heads.prototypes import PrototypeEncoder
from lib.heads.reduction import Reduction

__all__ = ["HyperbolicMapper", "PrototypeEncoder", "Reduction"]
