"""Which kernels numerical libraries take, so that the same input gives the same bits on any x86-64 with AVX2.

Left alone, torch, oneDNN, MKL, OpenBLAS and numpy choose by processor, and each choice rounds differently; sums over
several threads differ with their number, so work is spread over processes with one thread each.

No pin reaches MKL's square root, whose last bit differs between Intel and AMD: :func:`lib.geometry.numerics.root`
stands for it, and optimisers are fused.

They read the environment once, when they are imported: :mod:`lib.pinned` sets it before anything else. Code of your own
that imports this library is not touched.
"""

import os
import sys
from importlib.metadata import PackageNotFoundError, version

PINS = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    "MKL_CBWR": "COMPATIBLE",  # the only one of MKL's modes that Intel and AMD share
    "FAISS_SIMD_LEVEL": "AVX2",
    "TIMM_FUSED_ATTN": "0",  # fused attention chooses by processor, whatever it is told
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
"""Environment variable → value. Processes that are started inherit them, kernels of notebooks too."""


def wanted() -> dict[str, str]:
    """The pins on this machine: with numpy 2.5 or later its OpenBLAS stays free, whose svd crashes when pinned."""
    try:
        free = tuple(map(int, version("numpy").split(".")[:2])) >= (2, 5)
    except PackageNotFoundError:
        free = False
    return {name: value for name, value in PINS.items() if not (free and name == "OPENBLAS_CORETYPE")}


def settings() -> dict[str, str | None]:
    """The variables as they are: what was computed under others may differ in the last digits."""
    return {name: os.environ.get(name) for name in PINS}


def pin() -> None:
    """Set the variables, whatever they were.

    Raises:
        RuntimeError: if they were otherwise and numpy or torch, which read them once, are imported already.
    """
    late = sorted({"numpy", "torch"} & sys.modules.keys())
    pins = wanted()
    if late and settings() != {name: pins.get(name) for name in PINS}:
        raise RuntimeError(f"{' and '.join(late)} came first: pin before the first import (python -m lib.pinned ...)")
    for name in PINS.keys() - pins:
        os.environ.pop(name, None)
    os.environ.update(pins)
