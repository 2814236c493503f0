"""Does every step give the same bits on another processor? ``python -m lib.bench.bits`` writes ``reports/bench/bits``.

Each step computes something small, and the SHA-256 of its result is compared with the one of this processor. Other
processors are imitated by the switches of the numerical libraries and, where ``qemu-x86_64`` is installed, emulated.
"""

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from PIL import Image

from lib import errors, files, paths, pins
from lib.encoders import registry
from lib.geometry import PoincareBall
from lib.heads import Reduction
from lib.metrics.significance import paired_permutation
from lib.progress import track
from lib.results import answers
from lib.results.markdown import markdown_table
from lib.search import nearest
from lib.training import dino, hyper_dino, linear_prototypes, sweep
from lib.training.distillation import Settings
from lib.training.episodes import Episodes
from lib.training.experiment import answers as experiment
from lib.training.fit import Schedule
from lib.training.methods import Method
from lib.training.recipes import Recipe
from lib.training.splits import splits

EMULATED = ("Haswell", "EPYC-Rome")
SWITCHES: dict[str, dict[str, str]] = {
    "AVX2 alone": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
        "OPENBLAS_CORETYPE": "Haswell",
    },
    "no AVX2 in torch": {"ATEN_CPU_CAPABILITY": "default", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2"},
    "AMD Zen for OpenBLAS": {"OPENBLAS_CORETYPE": "Zen"},
    "AVX-512 of 2017": {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE", "OPENBLAS_CORETYPE": "SkylakeX"},
    "two threads": {"OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"},
}
"""What a processor is like → the switches that make this one take its kernels; the pins overrule those they set."""

TIMES, LARGE = 3, 8
"""What the pins cost is measured on inputs so many times as large; of so many turns of a step the quickest counts."""


def _features(n: int, dim: int = 48, classes: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features (n, dim) float32 around the centres of classes, labels and groups (n,)."""
    rng = np.random.default_rng(0)
    labels = np.arange(n) % classes
    x = rng.normal(size=(classes, dim))[labels] + 2 * rng.normal(size=(n, dim))
    return x.astype(np.float32), labels, np.arange(n) // 8


def _images(n: int) -> list[Image.Image]:
    pixels = np.random.default_rng(0).integers(0, 256, (n, 12, 12, 3), dtype=np.uint8)
    return [Image.fromarray(one).resize((96, 96), Image.Resampling.BILINEAR) for one in pixels]


def _reduced(source: str, n: int, size: int) -> np.ndarray:
    x, labels, _ = _features(160 * size)
    return Reduction.fit(x, labels, source, n, half=False)(x)


def _sweep(
    size: int, settings: Any, schedule: Schedule, head: Callable[[int], torch.nn.Module], loss: sweep.Loss
) -> list:
    """Weights and losses of three heads that were trained side by side."""
    x, labels, _ = _features(160 * size)
    tasks = [sweep.Task(f"head {seed}", head(seed), x, labels, seed) for seed in range(3)]
    history = sweep.fit(tasks, loss, schedule, workers=1)
    return [history, *(value.numpy() for task in tasks for value in task.head.state_dict().values())]


def _mappers(size: int) -> list:
    settings = hyper_dino.Settings(hidden=64)
    recipe, schedule = Recipe("scaled", 48, 16), Schedule(epochs=3, batch_size=64)
    return _sweep(size, settings, schedule, lambda seed: settings.make(recipe, seed), settings.loss)


def _prototypes(size: int) -> list:
    settings, schedule = linear_prototypes.Settings(hidden=64), Episodes(epochs=3, batch_size=64)
    x, labels, _ = _features(160)
    loss = settings.lessons(x[None], labels, schedule, "bits").loss
    return _sweep(size, settings, schedule, lambda seed: settings.make(Recipe("scaled", 48, 16), seed), loss)


def _dino(size: int) -> list:
    pixels = (
        torch.from_numpy(np.stack([np.array(image) for image in _images(4 * size)])).permute(0, 3, 1, 2).contiguous()
    )
    settings = Settings(steps=2, batch_size=4 * size, prototypes=64, local_crops=1)
    done = dino.pretrain(pixels, settings, seed=0, device="cpu")
    return [done.history["loss"].to_numpy(), *(value.numpy() for value in done.network.state_dict().values())]


def _search(size: int) -> list:
    points = PoincareBall().exp0(torch.from_numpy(_features(400 * size)[0]) / 20)
    return [found.numpy() for found in nearest(points[:50], points[50:], 20, PoincareBall())]


def _table(size: int) -> list:
    """A whole table as it is written, and a paired test."""
    x, labels, groups = _features(160 * size)
    methods = [
        Method("baseline", Recipe("PCA", 16, 0), hyper_dino.Settings()),
        Method("mapper", Recipe("PCA", 16, 8), hyper_dino.Settings(hidden=64), Schedule(epochs=3, batch_size=64)),
    ]
    found = experiment(x, labels, methods, splits(groups % 3, 0)[:2], (1, 5), workers=1)
    first, second = (
        np.concatenate([one.per_query.values["ap_min", 5].to_numpy() for one in found[name]]) for name in found
    )
    units = np.concatenate([groups[one.split.test] for one in found["mapper"]])
    test = paired_permutation(first, second, groups=units, n_resamples=500, seed=0)
    return [answers.values({"by group": found}).to_csv(index=False, float_format="%.4f"), repr(test)]


STEPS: dict[str, Callable[[int], Any]] = {
    "texture": lambda size: registry.make("texture").encode(_images(4 * size)),
    "network features": lambda size: registry.make("demo_vit", device="cpu").encode(_images(4 * size)),
    "scaler and PCA": lambda size: _reduced("PCA", 20, size),
    "NCA": lambda size: _reduced("NCA", 4, size),
    "sweep, Hyper-DINO": _mappers,
    "sweep, prototypes": _prototypes,
    "fine-tuning (DINO)": _dino,
    "search in the ball": _search,
    "table with a test": _table,
}
"""What is computed, of inputs of a size."""


def digest(result: Any) -> str:
    """SHA-256 over all numbers, to the bit, and words of a result."""
    found = hashlib.sha256()
    for part in result if isinstance(result, list) else [result]:
        found.update(part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
    return found.hexdigest()


def steps(size: int, times: int) -> None:
    """Run every step and print a line of json for each: its name, its hash, its processor time in seconds."""
    paths.TRAINED = None  # nothing that was trained before stands in
    for name, step in STEPS.items():
        seconds = []
        for _ in range(times):
            start = time.process_time()
            result = step(size)
            seconds.append(time.process_time() - start)
        print(json.dumps({"step": name, "sha256": digest(result), "seconds": min(seconds)}), flush=True)


def run(
    pinned: bool, switches: Mapping[str, str], emulator: Sequence[str] = (), size: int = 1, times: int = 1
) -> dict[str, dict[str, Any]]:
    """Step → what :func:`steps` says of it in a process of its own, with and without the pins."""
    environment = {name: value for name, value in os.environ.items() if name not in pins.PINS} | switches
    module = ["lib.pinned", "lib.bench.bits"] if pinned else ["lib.bench.bits"]
    command = [*emulator, sys.executable, "-m", *module, "steps", str(size), str(times)]
    done = subprocess.run(command, cwd=paths.ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {line["step"]: line for line in lines}


def processors() -> dict[str, tuple[dict[str, str], tuple[str, ...]]]:
    """Name → switches and emulator."""
    found: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {name: (s, ()) for name, s in SWITCHES.items()}
    if emulator := shutil.which("qemu-x86_64"):
        found |= {f"{model}, emulated": ({}, (emulator, "-cpu", model)) for model in EMULATED}
    return found


Lines = Mapping[str, dict[str, Any]]
"""Step → what a run said of it."""


def table(
    here: Mapping[bool, Lines], elsewhere: Mapping[str, Mapping[bool, Lines]], large: Mapping[bool, Lines]
) -> pd.DataFrame:
    """A row per step: the price of the pins, and for every processor whether it gave the bits of this one.

    here, large: pinned → what was said on this processor, of small and of large inputs. elsewhere: processor → the
    same of small ones.
    """
    rows = []
    for step in STEPS:
        row = {"step": step, "price": round(large[True][step]["seconds"] / large[False][step]["seconds"], 2)}
        for processor, both in elsewhere.items():
            for pinned, lines in both.items():
                equal = lines[step]["sha256"] == here[pinned][step]["sha256"]
                row[f"{processor}, {'pinned' if pinned else 'plain'}"] = "equal" if equal else "other"
        rows.append(row)
    return pd.DataFrame(rows)


def main() -> None:
    """Run all steps everywhere, print, and write ``reports/bench/bits.csv`` and ``.md``."""
    here = {pinned: run(pinned, {}) for pinned in (True, False)}
    large = {pinned: run(pinned, {}, size=LARGE, times=TIMES) for pinned in (True, False)}
    todo = processors()
    elsewhere: dict[str, dict[bool, Lines]] = {name: {} for name in todo}
    both = [(name, pinned) for name in todo for pinned in (True, False)]
    for name, pinned in track(both, total=len(both), what="bits", unit="runs"):
        elsewhere[name][pinned] = run(pinned, *todo[name])
    write(table(here, elsewhere, large))


def write(found: pd.DataFrame) -> None:
    """Write the table, and print it."""
    note = (
        f"Bits of every step against those of {model()}, with the pins of `lib/pins.py` and without. price: processor "
        f"time with the pins over without, of inputs {LARGE} times as large, the quickest of {TIMES} turns."
    )
    folder = paths.REPORTS / "bench"
    turned = found.set_index("step").T.rename_axis("processor").reset_index()
    text = f"# The same bits\n\n{markdown_table(turned)}\n\n{note}\n"
    with files.whole(folder / "bits.csv") as draft:
        found.to_csv(draft, index=False, lineterminator="\n")
    with files.whole(folder / "bits.md") as draft:
        draft.write_text(text, encoding="utf-8")
    print(text)


def model() -> str:
    """The name of this processor."""
    with open("/proc/cpuinfo", encoding="utf-8") as lines:  # noqa: PTH123
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()} ({torch.backends.cpu.get_cpu_capability()})"


if __name__ == "__main__":
    errors.one_message(lambda: steps(*map(int, sys.argv[2:])) if sys.argv[1:2] == ["steps"] else main())
