"""What Hyper-DINO trains (Table 1): which features go in, and how long the embedding is."""

from collections.abc import Sequence
from dataclasses import replace

from lib import checks
from lib.training import classifier
from lib.training.fit import Schedule
from lib.training.hyper_dino import Settings, flat
from lib.training.methods import Method
from lib.training.recipes import Recipe

LENGTHS = (5, 10, 20, 30, 40, 50, 60, 80, 100, 120, 160, 200, 230, 270, 310, 350, 384)
"""Input lengths of Table 1; for 32 outputs the paper takes those from 40 on."""


def recipes(
    dim: int,
    lengths: Sequence[int | str],
    dim_out: int = 32,
    longest: int | None = None,
    sources: Sequence[str] = ("PCA", "NCA"),
    nca_lengths: Sequence[int | str] | None = None,
) -> list[Recipe]:
    """The recipes of Table 1 for features of ``dim`` numbers, and the baselines of [9].

    Args:
        dim: length of the feature.
        lengths: of PCA and NCA, and ``"full"``; the scaled features are always there. Lengths beyond ``dim`` are left
            out, so that the paper's list serves every encoder.
        dim_out: embedding length of the compact family (published: 32), from inputs that are longer than it.
        longest: the most principal components that the training images allow (:func:`longest_pca`).
        sources: of :data:`lib.heads.reduction.SOURCES`.
        nca_lengths: of NCA alone, which takes long from many numbers; by default ``lengths``.

    Raises:
        InputError: if a length is neither a whole number from 1 on nor ``"full"``.

    >>> [recipe.name for recipe in recipes(8, [1, 4], dim_out=2, sources=["PCA"])][3:]
    ['PCA(1)', 'Hyper-DINO(PCA(1), 1)', 'PCA(4)', 'Hyper-DINO(PCA(4), 2)', 'Hyper-DINO(PCA(4), 4)']

    The paper's 62 configurations:

    >>> sum(recipe.dim_out > 0 for recipe in recipes(384, LENGTHS))
    62
    """
    checks.values(lengths=lengths, dim_out=dim_out)
    longest = dim if longest is None else longest
    inputs = [("scaled", dim)]
    for source in sources:
        most = dim if source == "NCA" else longest
        of_source = nca_lengths if source == "NCA" and nca_lengths is not None else lengths
        wanted = [most if length == "full" else int(length) for length in of_source]
        inputs += [(source, n) for n in wanted if n <= most]
    return [
        Recipe(source, n, out)
        for source, n in dict.fromkeys(inputs)
        for out in dict.fromkeys([0, dim_out, n] if n > dim_out else [0, n])
    ]


def opponents(
    dim: int, longest: int, dim_out: int, classes: int, settings: Settings, schedule: Schedule
) -> list[Method]:
    """Hyper-DINO(PCA, dim_out), first, and what it is compared with: the methods on which sentences rest.

    No head: raw features by cosine, and the head's own input; labels without a head: NCA of as many numbers as the
    head gives; labels in a linear classifier that sees the head's input, searched by its logits and by its class
    probabilities; and the head in flat space, its margin halved (HD-8).

    Args:
        dim: length of the feature.
        longest: number of principal components that go into a head.
        dim_out: embedding length, at most ``longest``.
        classes: number of classes.
        settings, schedule: of every head; the classifier has the schedule alone.

    >>> [method.name for method in opponents(1280, 384, 32, 8, Settings(), Schedule())][:4]
    ['Hyper-DINO(PCA(384), 32)', 'raw features, cosine', 'PCA(384)', 'NCA(32)']
    """
    dim_out = min(dim_out, longest)
    subject, nca = Recipe("PCA", longest, dim_out), Recipe("NCA", dim_out, 0)
    plain, of_classes = (replace(subject, dim_out=n) for n in (0, classes))
    rankings = {name: classifier.Settings(ranking=name, half=settings.half) for name in classifier.RANKINGS}
    return [
        Method(subject.name, subject, settings, schedule),
        Method("raw features, cosine", Recipe("raw", dim, 0), settings, schedule, search="cosine"),
        Method(plain.name, plain, settings, schedule),
        Method(nca.name, nca, settings, schedule),
        *(Method(f"linear classifier, {name}", of_classes, head, schedule) for name, head in rankings.items()),
        Method("flat head, half margin", subject, flat(settings, settings.m0 / 2), schedule),
    ]
