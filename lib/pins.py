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


def settings() -> dict[str, str | None]:
    """The variables as they are: what was computed under others may differ in the last digits."""
    return {name: os.environ.get(name) for name in PINS}


def pin() -> None:
    """Set the variables, whatever they were.

    Raises:
        RuntimeError: if they were otherwise and numpy or torch, which read them once, are imported already.
    """
    late = sorted({"numpy", "torch"} & sys.modules.keys())
    if late and settings() != PINS:
        raise RuntimeError(f"{' and '.join(late)} came first: pin before the first import (python -m lib.pinned ...)")
    os.environ.update(PINS)
