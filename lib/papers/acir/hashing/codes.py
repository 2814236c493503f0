"""What trained codes are worth: ranked by content, inside balls, and beside the numbers that they were made of."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from lib.metrics import hashing, retrieval
from lib.papers.acir import radius
from lib.papers.acir.hashing.experiment import TOP
from lib.training import experiment
from lib.training.methods import Fitted


def packed(one: Fitted, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Packed codes of the queries and of the closed gallery."""
    return hashing.pack(one.embed(x[one.split.test])), hashing.pack(one.embed(x[one.split.train]))


def ranking(several: Mapping[str, Sequence[Fitted]], x: np.ndarray, dim: int, labels: np.ndarray) -> pd.DataFrame:
    """Ties in expectation, and broken by content as only ACIR's are in the paper (AC-13), for every loss.

    ``x``: rows of ``dim`` feature numbers and a fingerprint. Columns method, repeat; tied (mean number of items at the
    distance of rank 100), and of both rankings plain, content (mAP, hits) and plain_min, content_min: percent.
    """
    rows = []
    for name, ones in several.items():
        for one in ones:
            query, gallery = (x[part][:, :dim] for part in (one.split.test, one.split.train))
            relevant = labels[one.split.test][:, None] == labels[one.split.train]
            distance = hashing.hamming(*packed(one, x))
            last = np.partition(distance, TOP - 1, axis=1)[:, TOP - 1, None]
            key = hashing.content_key(distance, hashing.content_similarity([query], [gallery]))
            cells = {"method": name, "repeat": one.split.repeat, "tied": (distance == last).sum(axis=1).mean()}
            for end, z in (("", "hits"), ("_min", "min")):
                for ranked, values in (("plain", distance), ("content", key)):
                    found = retrieval.average_precision_at_k(values, relevant, [TOP], z).nanmean().item()
                    cells[ranked + end] = 100 * found
            rows.append(cells)
    return pd.DataFrame(rows)


def by_radius(
    several: Mapping[str, Sequence[Fitted]], x: np.ndarray, labels: np.ndarray, radii: Sequence[int]
) -> pd.DataFrame:
    """Table 6: columns method, repeat, then those of :func:`lib.metrics.hashing.by_centre`, in percent; n_left_out.

    Queries of a class that the archive has no image of, and so no centre, are left out and counted (n_left_out). Last
    comes the trivial answer, :data:`lib.papers.acir.radius.COMMONEST`.
    """
    frames = []
    for name, ones in several.items():
        for one in ones:
            codes = one.embed(x[one.split.test]), one.embed(x[one.split.train])
            frame = radius.by_radius(*codes, labels[one.split.test], labels[one.split.train], radii)
            frame.insert(0, "method", name)
            frames.append(frame.assign(repeat=one.split.repeat))
    split = next(iter(several.values()))[0].split
    trivial = radius.commonest(labels[split.test], labels[split.train], radii)
    return pd.concat([*frames, trivial], ignore_index=True)


def bits_used(several: Mapping[str, Sequence[Fitted]], x: np.ndarray, labels: np.ndarray) -> pd.DataFrame:
    """What becomes of the bits: columns method, repeat, then

    codes (mAP, min(k, R), percent), numbers (the same before the sign), codes_class and numbers_class (maAP, where each
    class counts alike), distinct (codes in the gallery), off (mean of ||h| − 1|), and loss_last (the mean of the last
    epoch).
    """
    rows = []
    for name, ones in several.items():
        for one in ones:
            raw = replace(one, method=replace(one.method, head=replace(one.method.head, binary=False)))
            values = {}
            for what, fit in (("codes", one), ("numbers", raw)):
                _, per_query = experiment.search(fit, x, labels, one.split.test, one.split.train, (TOP,))
                mean = per_query.mean().set_index(["metric", "k"]).loc[("ap_min", TOP)]
                values |= {what: 100 * mean["value"], f"{what}_class": 100 * mean["class_mean"]}
            h = raw.embed(x[one.split.train])
            distinct = len(np.unique(hashing.pack(h), axis=0))
            ends = {"distinct": distinct, "off": (h.abs() - 1).abs().mean().item(), "loss_last": one.history[-1]}
            rows.append({"method": name, "repeat": one.split.repeat} | values | ends)
    return pd.DataFrame(rows)
