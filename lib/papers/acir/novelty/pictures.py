"""What a decoder makes of an image, and the known images that are refused."""

from collections.abc import Sequence
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from PIL import Image

from lib import paths
from lib.datasets.catalogue import facts
from lib.figures import style, tiles
from lib.papers.acir.novelty.scene import FAR, KNOWN, NEAR, Scene
from lib.results import pictures
from lib.results.shown import Figure as Shown
from lib.results.store import Run
from lib.training.rebuild import Rebuilder

PIXELS = 96
"""Of the longer side of a picture in a figure."""

BLOCKS = 8
"""Along each side of a difference whose picture may not be published: its means over so many blocks show no image."""


def examples(scene: Scene, score: np.ndarray) -> np.ndarray:
    """Rows of one image of each sort: two known, two of the left-out class, one of each odd kind; of middle scores."""
    chosen = [*_middle(score, scene.rows(KNOWN), 2), *_middle(score, scene.rows(NEAR), 2)]
    far = scene.rows(FAR)
    for kind in scene.kinds():
        chosen += _middle(score, far[scene.kind[far] == kind], 1)
    return np.array(chosen)


def _middle(score: np.ndarray, rows: np.ndarray, n: int) -> list[int]:
    """The ``n`` rows around the median score, no choice of ours."""
    ordered = rows[np.argsort(score[rows], kind="stable")]
    places = np.linspace(0, 1, n + 2)[1:-1] * (len(ordered) - 1)
    return ordered[places.round().astype(int)].tolist()


def rebuilt(scene: Scene, decoder: Rebuilder, rows: np.ndarray, score: np.ndarray, *, bare: bool = False) -> Figure:
    """Image, what the decoder rebuilds, and where they differ (mean |x − x̂| over colours), a column per image.

    score: (n,) residuals, above each column. bare: without the pictures, for images that may not be published; of the
    differences the means of :data:`BLOCKS` × :data:`BLOCKS` blocks are left.
    """
    x = scene.pixels[rows] / 255
    y = np.asarray(torch.as_tensor(decoder.rebuild(scene.taps.take(rows))).float())
    lost = np.abs(x - y).mean(axis=1)
    lost, third = (blocks(lost), f"difference,\n{BLOCKS} × {BLOCKS} means") if bare else (lost, "difference")
    with style.house():
        height = 0.9 + 3 * (style.WIDTH - 0.9) / len(rows)
        figure, axes = plt.subplots(3, len(rows), figsize=(style.WIDTH, height), squeeze=False)
        for column, row in enumerate(rows):
            axes[0, column].set_title(f"{_title(scene, row)}\n{score[row]:.2f}", fontsize=6)
            for axis, image in zip(axes[:2, column], (x[column], y[column]), strict=True):
                axis.imshow(np.full((1, 1, 3), 0.9) if bare else image.transpose(1, 2, 0))
            shade = axes[2, column].imshow(lost[column], cmap="Greys", vmin=0, vmax=0.5)
        for axis in axes.flat:
            axis.set(xticks=[], yticks=[])
        for axis, text in zip(axes[:, 0], ("image", "rebuilt", third), strict=True):
            axis.set_ylabel(text, fontsize=7)
        figure.colorbar(shade, ax=axes, label="|x − x̂|", shrink=0.3, aspect=12, anchor=(0, 0), ticks=[0, 0.25, 0.5])
        plt.close(figure)
    return figure


def blocks(lost: np.ndarray) -> np.ndarray:
    """The means of ``lost: (n, H, W)`` over blocks, (n, BLOCKS, BLOCKS); what is over at the far sides is left out.

    >>> blocks(np.ones((2, 224, 96))).shape
    (2, 8, 8)
    """
    n, height, width = lost.shape[0], lost.shape[1] // BLOCKS, lost.shape[2] // BLOCKS
    whole = lost[:, : height * BLOCKS, : width * BLOCKS]
    return whole.reshape(n, BLOCKS, height, BLOCKS, width).mean(axis=(2, 4))


def _title(scene: Scene, row: int) -> str:
    part = scene.part[row]
    name = style.legible(str(scene.kind[row]).replace("_", " "), 12)
    return f"{ {KNOWN: 'known', NEAR: 'left out', FAR: 'OOD'}[part] }\n{name}"


def refused(scene: Scene, rows: Sequence[int], texts: Sequence[str], *, bare: bool = False) -> Figure:
    """The images of ``rows`` side by side, ``texts`` above them."""
    shown = [_picture(scene, row, bare) for row in rows]
    names = [f"{scene.kind[row]}\n{text}" for row, text in zip(rows, texts, strict=True)]
    return tiles.row(shown, names)


def _picture(scene: Scene, row: int, bare: bool) -> Image.Image:
    if bare:
        return Image.new("RGB", (8, 8), "#e8e8e8")
    image = Image.fromarray(scene.pixels[row].transpose(1, 2, 0))
    image.thumbnail((PIXELS, PIXELS))
    return image


def listed(scene: Scene, rows: np.ndarray, score: np.ndarray) -> pd.DataFrame:
    """The images of ``rows`` with their part, kind and ``score: (n,)``."""
    return pd.DataFrame({"row": rows, "part": scene.part[rows], "kind": scene.kind[rows], "score": score[rows]})


def save(run: Run, novel: Sequence[str], name: str, shown: Shown, bare: Figure) -> Shown:
    """As :func:`lib.results.pictures.save`; with pictures of ``novel`` datasets only where all of these allow it."""
    if all(facts(other).pictures is not None for other in novel):
        return pictures.save(run, name, shown, bare)
    style.save(shown.figure, paths.BUILD / "figures" / run.profile / run.dataset / f"{name}.png")
    text = f"{shown.caption} The pictures themselves are not published; a run puts them below build/figures."
    run.save(name, replace(shown, caption=text, figure=bare))
    return shown
