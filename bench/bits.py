"""Does every step give the same bits on another processor? ``python -m bench.bits`` writes ``reports/bench/bits``.

Each step computes something small, and the SHA-256 of its result is compared with the one of this processor. Other
processors are imitated by the switches of the numerical libraries and, where ``qemu-x86_64`` is installed, emulated.

What real processors gave stands in ``reports/bench/bits.json``: each machine where this is run adds its own hashes, and
is compared with all others on record that had the same versions of the packages.

Every finished step is kept in ``build/bits``, so a run that was interrupted goes on, and one that could not reach all
steps in :data:`MINUTES` reaches more when it is started again; ``python -m bench.bits 30`` gives it 30.
"""

import contextlib
import functools
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sklearn
import torch
from PIL import Image

from lib import errors, files, paths, pins
from lib.encoders import registry
from lib.geometry import PoincareBall
from lib.heads import Reduction
from lib.losses.linear_prototypes import Comparison
from lib.metrics.significance import paired_permutation
from lib.progress import track
from lib.search import nearest
from lib.study.markdown import markdown_table
from lib.study.scores import of_answers
from lib.training import dino, hyper_dino, linear_prototypes, sweep
from lib.training.distillation import Settings
from lib.training.episodes import Episodes
from lib.training.experiment import answers as experiment
from lib.training.fit import Schedule
from lib.training.methods import Method
from lib.training.recipes import Recipe
from lib.training.splits import splits

HERE = "this processor"
EMULATED = ("EPYC-Rome", "Haswell")
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
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
    "two threads": dict.fromkeys(THREADS, "2"),
}
"""What a processor is like → the switches that make this one take its kernels; the pins overrule those they set."""

TIMES, TURNS, LARGE = 3, 3, 8
"""What the pins cost: the quickest of so many times counts, in each of so many processes with the pins and without that
take turns, so that a busy moment meets both; inputs are so many times as large."""

MINUTES = 9
"""What an emulated processor may take for all steps, most of it for the imports."""


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
    settings = linear_prototypes.Settings(Comparison("poincare", 0.5), hidden=64)
    schedule = Episodes(epochs=3, batch_size=64)
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
    return [of_answers({"by group": found}).means().to_csv(index=False, float_format="%.4f"), repr(test)]


STEPS: dict[str, Callable[[int], Any]] = {
    "texture": lambda size: registry.make("texture").encode(_images(4 * size)),
    "network features": lambda size: registry.make("demo_vit", device="cpu").encode(_images(4 * size)),
    "scaler and PCA": lambda size: _reduced("PCA", 20, size),
    "NCA": lambda size: _reduced("NCA", 4, size),
    "sweep, Hyper-DINO": _mappers,
    "sweep, prototypes": _prototypes,
    "search in the ball": _search,
    "table with a test": _table,
    "fine-tuning (DINO)": _dino,
}
"""What is computed, of inputs of a size; the slowest comes last."""


def digest(result: Any) -> str:
    """SHA-256 over all numbers, to the bit, and words of a result."""
    found = hashlib.sha256()
    for part in result if isinstance(result, list) else [result]:
        found.update(part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
    return found.hexdigest()


def steps(size: int, times: int, names: Sequence[str]) -> None:
    """Run the steps and print a line of json for each: its name, its hash, its processor time in seconds."""
    paths.TRAINED = None  # nothing that was trained before stands in
    for name in names:
        seconds = []
        for _ in range(times):
            start = time.process_time()
            result = STEPS[name](size)
            seconds.append(time.process_time() - start)
        print(json.dumps({"step": name, "sha256": digest(result), "seconds": min(seconds)}), flush=True)


Lines = Mapping[str, dict[str, Any]]
"""Step → what a run said of it."""


def run(
    processor: str, pinned: bool, size: int = 1, times: int = 1, turn: int = 0, minutes: float | None = None
) -> Lines:
    """What :func:`steps` says in a process of its own, of all steps that it reached by now.

    An emulator that crashes (QEMU before 8 does, in AVX2's gathers) ends its own run alone, as one without time does.
    """
    journal = _journals() / f"{processor}, {_pins(pinned)}, {size}, {turn}.jsonl"
    journal.parent.mkdir(parents=True, exist_ok=True)
    if todo := [step for step in STEPS if step not in _read(journal)]:
        switches, emulator = processors()[processor]
        environment = {name: value for name, value in os.environ.items() if name not in pins.PINS} | switches
        module = ["lib.pinned", "bench.bits"] if pinned else ["bench.bits"]
        command = [*emulator, sys.executable, "-m", *module, "steps", str(size), str(times), *todo]
        with journal.open("a") as lines, contextlib.suppress(subprocess.TimeoutExpired):
            limit = 60 * minutes if minutes and emulator else None
            subprocess.run(command, cwd=paths.ROOT, env=environment, stdout=lines, check=not emulator, timeout=limit)
    return _read(journal)


def _journals() -> Path:
    """The folder of what was computed by this code on this processor."""
    code = [file.read_bytes() for file in sorted((paths.ROOT / "lib").rglob("*.py"))]
    return paths.BUILD / "bits" / digest([model(), *code])[:16]


def _read(journal: Path) -> Lines:
    said = journal.read_text(encoding="utf-8").splitlines() if journal.exists() else []
    lines = [json.loads(line) for line in said if line.startswith("{")]
    return {line["step"]: line for line in lines}


def _pins(pinned: bool) -> str:
    return "pinned" if pinned else "plain"


@functools.cache
def processors() -> dict[str, tuple[dict[str, str], tuple[str, ...]]]:
    """Name → switches, one thread unless they say otherwise, and emulator."""
    one: dict[str, str] = dict.fromkeys(THREADS, "1")
    found: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {HERE: (one, ())}
    found |= {name: (one | switches, ()) for name, switches in SWITCHES.items()}
    if emulator := shutil.which("qemu-x86_64"):
        found |= {f"{chip}, emulated": (one, (emulator, "-cpu", chip)) for chip in EMULATED}
    return found


def quickest(turns: Sequence[Lines]) -> dict[str, float]:
    """Step → the least processor time of all turns."""
    return {step: min(lines[step]["seconds"] for lines in turns) for step in STEPS}


def overruled(processor: str) -> bool:
    """Whether the pins leave nothing of what makes this processor like another."""
    switches, emulator = processors()[processor]
    return not emulator and switches.keys() <= pins.PINS.keys()


def table(
    here: Mapping[bool, Lines],
    elsewhere: Mapping[str, Mapping[bool, Lines]],
    seconds: Mapping[bool, Mapping[str, float]],
) -> pd.DataFrame:
    """A row per step: the price of the pins, and for every processor whether it gave the bits of this one.

    here: pinned → what was said on this processor. elsewhere: processor → the same, of the steps that were reached.
    seconds: pinned → step → processor time.
    """
    rows = []
    for step in STEPS:
        row = {"step": step, "price": round(seconds[True][step] / seconds[False][step], 2)}
        for processor, both in elsewhere.items():
            for pinned, lines in both.items():
                row[f"{processor}, {_pins(pinned)}"] = _compared(lines.get(step), here[pinned][step])
        rows.append(row)
    return pd.DataFrame(rows)


def _compared(there: dict[str, Any] | None, here: dict[str, Any]) -> str:
    if there is None:
        return "not reached"
    return "equal" if there["sha256"] == here["sha256"] else "other"


def main(minutes: float = MINUTES) -> None:
    """Run all steps everywhere, print, and write ``reports/bench/bits.csv`` and ``.md``."""
    here = {pinned: run(HERE, pinned) for pinned in (True, False)}
    turns = [{pinned: run(HERE, pinned, LARGE, TIMES, turn) for pinned in (True, False)} for turn in range(TURNS)]
    seconds = {pinned: quickest([turn[pinned] for turn in turns]) for pinned in (True, False)}
    elsewhere: dict[str, dict[bool, Lines]] = {name: {} for name in processors() if name != HERE}
    todo = [(name, pinned) for name in elsewhere for pinned in (True, False) if not (pinned and overruled(name))]
    for name, pinned in track(todo, total=len(todo), what="bits", unit="runs"):
        elsewhere[name][pinned] = run(name, pinned, minutes=minutes)
    known = record(here)
    write(table(here, known | elsewhere, seconds), sum(seconds[True].values()) / sum(seconds[False].values()))


def record(here: Mapping[bool, Lines]) -> dict[str, dict[bool, Lines]]:
    """What other real processors said, by the committed file, to which this processor is added.

    Returns:
        Processor → pinned → lines, as ``here``; of those whose versions of the packages are these.
    """
    file = paths.REPORTS / "bench" / "bits.json"
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    hashes = {_pins(pinned): {step: line["sha256"] for step, line in lines.items()} for pinned, lines in here.items()}
    with files.whole(file) as draft:
        text = json.dumps(known | {model(): {"versions": versions(), **hashes}}, indent=2)
        draft.write_text(f"{text}\n", encoding="utf-8")
    return {
        f"{name}, itself": {
            pinned: {step: {"sha256": found} for step, found in said[_pins(pinned)].items()} for pinned in (True, False)
        }
        for name, said in known.items()
        if name != model() and said["versions"] == versions()
    }


def versions() -> str:
    """The packages that compute."""
    return f"torch {torch.__version__}, numpy {np.__version__}, scikit-learn {sklearn.__version__}"


def write(found: pd.DataFrame, price: float) -> None:
    """Write the table, with the ``price`` of all steps together, and print it."""
    folder = paths.REPORTS / "bench"
    turned = found.set_index("step").T.rename_axis("processor").reset_index()
    text = f"# The same bits\n\n{markdown_table(turned)}\n\n{caption(price)}\n"
    with files.whole(folder / "bits.csv") as draft:
        found.to_csv(draft, index=False, lineterminator="\n")
    with files.whole(folder / "bits.md") as draft:
        draft.write_text(text, encoding="utf-8")
    print(text)


def caption(price: float) -> str:
    """What the table says, with the ``price`` of all steps together."""
    return (
        f"A column is a step of the pipeline on a small made-up input. A row is a processor: this one, {model()}, made "
        "to take the kernels of another by the switches of the numerical libraries; another machine's, itself, where "
        "the same was run before; or another, emulated by qemu-user. "
        "pinned: with the pins of `lib/pins.py`, as every stage and test runs (left out where they overrule all of "
        "the switches); plain: without, with one thread. equal: every number of the result is to the last bit the one "
        "that this processor gives, pinned or plain as the row is; other: at least one is not; not reached: the "
        "emulator had no time left, or crashed. price: processor time pinned over plain, of inputs "
        f"{LARGE} times as large, the quickest of {TIMES * TURNS}; {price:.2f} for all steps together. Measured with "
        f"{versions()}, Python {platform.python_version()}."
    )


def model() -> str:
    """The name of this processor."""
    with open("/proc/cpuinfo", encoding="utf-8") as lines:  # noqa: PTH123
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()} ({torch.backends.cpu.get_cpu_capability()})"


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["steps", size, times, *names]:
            errors.one_message(lambda: steps(int(size), int(times), names))
        case minutes:
            errors.one_message(lambda: main(*map(float, minutes)))
