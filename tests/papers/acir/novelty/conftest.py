"""Images of three known classes and one left out, of nine patients, and two kinds of odd pictures; all tiny."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from lib.datasets.table import ImageTable
from lib.encoders.taps import Taps
from lib.papers.acir.novelty import scene as scenes
from lib.papers.acir.novelty.experiment import Coder

N, ODD, SIDE, CLASSES = 108, 12, 32, ("a", "b", "c", "new")


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    rng = np.random.default_rng(0)
    label = np.arange(N) % 4
    names = np.array(CLASSES)[label]
    patients = np.array([f"P{i // 12}" for i in range(N)])
    rows = pd.DataFrame({"image_id": [f"i{i}" for i in range(N)], "path": "x.png", "label": names, "group": patients})
    table = ImageTable("own", tmp_path_factory.mktemp("own"), rows, "patient")
    kinds = np.array(["fog", "noise"] * (ODD // 2))
    centre = np.concatenate([rng.normal(size=(4, 6, 1, 1)) * 2, rng.normal(size=(2, 6, 1, 1)) * 8])
    of = np.concatenate([label, 4 + np.arange(ODD) % 2])
    deep = (centre[of] + rng.normal(size=(N + ODD, 6, 2, 2))).astype(np.float16)
    blank = scenes.Scene(
        tables=(table, SimpleNamespace(rows=rows)),
        taps=Taps(rng.normal(size=(N + ODD, 4, 8, 8)).astype(np.float16), deep),
        pixels=rng.integers(0, 256, (N + ODD, 3, SIDE, SIDE), dtype=np.uint8),
        labels=np.full(N + ODD, -1),
        classes=(),
        part=np.full(N + ODD, scenes.FAR, dtype="<U8"),
        kind=np.concatenate([names, kinds]),
        groups=np.concatenate([patients, [f"odd {i}" for i in range(ODD)]]),
        fold=scenes.asking(np.arange(N) // 12 % 6),
    )
    return blank.without("new", seed=0)


@pytest.fixture(scope="module")
def coders(scene):
    """CSQ's and ACIR's codes of 8 bits, two trainings each: made up, known classes near their centres."""
    rng = np.random.default_rng(1)
    centres = rng.choice([-1.0, 1.0], (3, 8))

    def code(noise):
        h = np.where(scene.labels[:, None] >= 0, centres[scene.labels], rng.choice([-1.0, 1.0], (len(scene.labels), 8)))
        return h + noise * rng.normal(size=h.shape)

    return {
        name: [Coder(name, code(0.6), [rng.normal(size=(len(scene.labels), 5))], 1.0, 0.5, 10) for _ in range(2)]
        for name in ("CSQ", "ACIR")
    }


class Decoder:
    """Rebuilds the mean image of what it is asked."""

    history, steps = [0.4, 0.3], 7

    def rebuild(self, taps):
        return torch.full((len(taps.deep), 3, SIDE, SIDE), 0.5).numpy()


@pytest.fixture(scope="module")
def decoders():
    return [Decoder(), Decoder()]
