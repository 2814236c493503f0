"""Small trainable modules on frozen features, and the reductions that come before them."""

import importlib
from typing import Any

HOMES = {
    "ClippedProjection": "lib.heads.hyp_vit",
    "HyperbolicMapper": "lib.heads.mapper",
    "PrototypeEncoder": "lib.heads.prototypes",
    "Reduction": "lib.heads.reduction",
}


def __getattr__(name: str) -> Any:
    """Imported when it is first asked for: a mapper does not wait for scikit-learn, a reduction not for torch."""
    if name in HOMES:
        return getattr(importlib.import_module(HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
