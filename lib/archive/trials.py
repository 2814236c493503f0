"""Every method tried on one's own images, once, on cached features: what its answers are worth, and what it costs."""

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import joblib
import numpy as np
import pandas as pd

from lib.archive import methods
from lib.datasets import folds
from lib.datasets.table import ImageTable
from lib.errors import InputError
from lib.metrics import votes
from lib.papers.beyond.factors.tables import stored
from lib.processes import spread
from lib.progress import silently, track
from lib.study import answers
from lib.study.run import Arm
from lib.study.scores import Scores, of_answers
from lib.training import experiment, kept
from lib.training.experiment import Voted
from lib.training.methods import Answer, Method
from lib.training.recipes import allowed_ks
from lib.training.splits import Split, galleries, repeated, splits

SCORE = "precision"
"""What decides: the share of right images among the first k (:mod:`lib.archive.verdict` says why not AP)."""
LARGE, FEWER = 2000, 3
"""Of more images than this there are so many folds, and so many trainings, at most: each is large enough."""


def effort(labels: np.ndarray, n_folds: int, n_seeds: int) -> tuple[int, int]:
    """Folds and trainings for images with these ``labels: (n,)``: fewer than asked for where there are many.

    Fewer folds also where only one class has as many images: two classes stay.

    >>> effort(np.repeat(["a", "b"], 150), 5, 5), effort(np.repeat(["a", "b"], 5000), 5, 5)
    ((5, 5), (3, 3))
    >>> effort(np.repeat(["a", "b", "c"], [9, 3, 1]), 5, 5)
    (3, 5)
    """
    counts = np.sort(np.unique(labels, return_counts=True)[1])
    n_folds = min(n_folds, max(2, int(counts[-2:][0])))
    return (n_folds, n_seeds) if len(labels) <= LARGE else (min(n_folds, FEWER), min(n_seeds, FEWER))


def arms(
    features: Mapping[str, np.ndarray],
    labels: np.ndarray,
    parts: Sequence[np.ndarray],
    kin: tuple[int, ...] | None = None,
) -> list[Arm]:
    """Plain features of every encoder, the first encoder's first; then what is learnt, on the first encoder's.

    features: encoder → (n, dim). labels, parts, kin: as in :func:`lib.archive.methods.made`.
    """
    first, x = next(iter(features.items()))
    bare = [
        Arm(replace(methods.plain(name, vectors.shape[1]), name=called(name)), name, {"key": methods.PLAIN})
        for name, vectors in features.items()
    ]
    learnt = methods.made(x.shape[1], labels, parts, kin)
    return bare + [Arm(method, first, {"key": key}) for key, method in learnt.items() if key != methods.PLAIN]


def called(encoder: str) -> str:
    """What plain features of an encoder are called.

    >>> called("densenet121"), called("texture")
    ('plain features of densenet121', 'texture')
    """
    return encoder if encoder == methods.TEXTURE else f"{methods.METHODS[methods.PLAIN].title} of {encoder}"


@dataclass(frozen=True, eq=False)
class Measured:
    """What every method got.

    Attributes:
        rows: a row per archive, method and k: columns archive, method, encoder, key, k, those of
            :meth:`lib.study.scores.Scores.means`, group_mean (as ours, but of each patient first), f1_1, f1_3, f1_5
            (percent; macro F1 of the votes of other patients' images), seconds (one processor's, of one training on all
            images; NaN for what needs none), bytes (of one code, two a number).
        tests: each method against ``base`` in the archive that decides, with the longest list; rows of
            :meth:`lib.study.scores.Scores.tests`, with rim (percent of images, of the worst training).
        strict: the archive that decides: new patients' images ask those of others.
        base: plain features of the first encoder.
        lacking: method → why these images do not allow it.
        n_folds, n_seeds: that there were.
    """

    rows: pd.DataFrame
    tests: pd.DataFrame
    strict: str
    base: str
    lacking: Mapping[str, str]
    n_folds: int | str
    n_seeds: int

    @property
    def k(self) -> int:
        """The length of the list that decides."""
        return int(self.rows["k"].max())

    def of(self, method: str, k: int | None = None) -> pd.Series:
        """The row of a method in the archive that decides, for the longest list or ``k``."""
        rows = self.rows[(self.rows["method"] == method) & (self.rows["archive"] == self.strict)]
        return rows[rows["k"] == (k or self.k)].iloc[0]


@dataclass(frozen=True, eq=False)
class _Job:
    """One method on all folds of one rule, with the seeds of one training.

    archives: archive → gallery, and the groups that a query finds nothing of. strict: whether the rule keeps patients
    apart, so that votes count and seconds are taken.
    """

    arm: Arm
    parts: Sequence[Split]
    archives: Mapping[str, tuple[str, np.ndarray]]
    strict: bool

    @property
    def trained(self) -> bool:
        """Whether there is anything to learn."""
        return bool(self.arm.method.recipe.dim_out)


@dataclass(frozen=True, eq=False)
class _Done:
    answers: Mapping[str, list[Answer]]
    voted: list[Voted]
    seconds: float


def measure(
    features: Mapping[str, np.ndarray],
    images: ImageTable,
    kin: tuple[int, ...] | None,
    ks: Sequence[int],
    n_folds: int,
    n_seeds: int,
    seed: int = 0,
    *,
    workers: int = -1,
) -> Measured:
    """Try every method that the images allow, with one line of progress over the whole.

    Args:
        features: encoder → (n, dim); everything is learnt on the first.
        images: as folds can use them (:func:`lib.datasets.folds.usable`).
        kin: of :func:`lib.archive.methods.branches`.
        ks: list lengths, of which the shortest and the longest that every archive can fill are taken.
        n_folds, n_seeds: of :func:`effort`. On folds by image, beside those by patient, there is one training.

    Raises:
        InputError: for images that allow no folds, and too few for a vote of :data:`lib.metrics.votes.KS`.
    """
    labels, groups = images.codes, images.groups
    fold_of = folds.rules(images, n_folds, seed)
    ks, strict = allowed_ks(ks, fold_of.values()), folds.strictest(fold_of)
    ends = sorted({min(ks), max(ks)})
    parts = {rule: splits(fold, seed) for rule, fold in fold_of.items()}
    learnt_from = [part.train for of_rule in parts.values() for part in of_rule]
    if (fewest := min(map(len, learnt_from))) < max(votes.KS):
        raise InputError(
            f"{len(labels)} images are too few to compare methods: beside a fold, {max(votes.KS)} must be left "
            f"to vote, and here are {fewest}. Add images, or search by plain features: make archive DATA=<folder>"
        )
    all_arms = arms(features, labels, learnt_from, kin)
    itself = np.arange(len(labels))
    archives = {rule: {f"closed, {rule}": ("closed", itself)} for rule in parts}
    if "open" in galleries(parts[strict], groups, max(ks)):
        archives[strict][f"open, {strict}"] = ("open", groups)
    jobs = [
        _Job(arm, repeated(parts[rule], n + 1)[-len(parts[rule]) :], archives[rule], rule == strict)
        for n in range(n_seeds)
        for rule in parts
        for arm in all_arms
        if n == 0 or (rule == strict and arm.method.recipe.dim_out)
    ]
    done = _watched(jobs, features, labels, groups, ends, workers)
    answers, voted = _together(jobs, done, n_seeds)
    base, closed = all_arms[0].name, f"closed, {strict}"
    scores = of_answers(answers, groups, rule="archive")
    rows = scores.means().query("metric == @SCORE").drop(columns="metric")
    rows = rows.merge(_of_groups(scores), on=["archive", "method", "k"])
    tests = of_answers({closed: answers[closed]}, groups).tests(
        [(arm.name, base) for arm in all_arms[1:]], [ends[-1]], metric=SCORE, seed=seed
    )
    rims = rows[rows["archive"] == closed].drop_duplicates("method").set_index("method")["rim"]
    timed = [(job, result) for job, result in zip(jobs, done, strict=True) if not np.isnan(result.seconds)]
    about = pd.DataFrame([_about(job, result) for job, result in timed])
    about = about.merge(_f1(voted), on="method")
    return Measured(
        about.merge(rows, on="method", sort=False),
        tests.assign(at_rim=tests["first"].map(rims)),
        closed,
        base,
        methods.lacking(labels, learnt_from, kin),
        folds.count(fold_of),
        n_seeds,
    )


def _watched(
    jobs: Sequence[_Job],
    features: Mapping[str, np.ndarray],
    labels: np.ndarray,
    groups: np.ndarray,
    ks: Sequence[int],
    workers: int,
) -> list[_Done]:
    """All jobs done, with one line of progress, and how long the rest takes."""
    clock = _Clock(sum(len(job.parts) for job in jobs))
    calls = (joblib.delayed(_do)(job, features[job.arm.encoder], labels, groups, ks) for job in jobs)

    def ended() -> Iterator[tuple[_Job, _Done]]:
        for job, result in zip(jobs, spread(calls, workers), strict=True):
            clock.done += len(job.parts)
            yield job, result

    size = {"size": lambda both: len(both[0].parts), "note": lambda _: clock.left()}
    return [result for _, result in track(ended(), total=clock.total, what="methods", unit="folds", **size)]


@dataclass
class _Clock:
    """How long the rest takes, if it goes on as it began."""

    total: int
    done: int = 0
    begun: float = field(default_factory=time.perf_counter)

    def left(self) -> str:
        """In words; nothing at the end."""
        seconds = (time.perf_counter() - self.begun) / self.done * (self.total - self.done)
        return f"about {spoken(seconds)} left" if self.done < self.total else ""


def spoken(seconds: float) -> str:
    """A time as people say it.

    >>> spoken(0.4), spoken(42), spoken(200)
    ('1 second', '42 seconds', '3 minutes')
    """
    number, unit = (max(1, round(seconds)), "second") if seconds < 100 else (round(seconds / 60), "minute")
    return f"{number:,} {unit}{'s' * (number != 1)}"


def _do(job: _Job, x: np.ndarray, labels: np.ndarray, groups: np.ndarray, ks: Sequence[int]) -> _Done:
    """Fit a method on its folds, and let their queries ask."""
    method = job.arm.method
    with silently(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the same of every fold, such as a number that hardly varies
        fitted = experiment.fit(x, labels, [method], job.parts, workers=1)
        answers = {
            archive: experiment.ask(fitted, x, labels, ks, gallery=gallery, groups=apart, workers=1)[method.name]
            for archive, (gallery, apart) in job.archives.items()
        }
        if not job.strict:
            return _Done(answers, [], np.nan)
        voted = experiment.votes(fitted, x, labels, groups, archives=["closed"], workers=1)["closed"][method.name]
        return _Done(answers, voted, _seconds(method, x, labels, job) if job.parts[0].repeat == 0 else np.nan)


def _seconds(method: Method, x: np.ndarray, labels: np.ndarray, job: _Job) -> float:
    """Processor seconds of one training on all images, taken once; components, which methods share, do not count."""
    if not job.trained:
        return 0.0
    rows = np.arange(len(labels))
    split = [Split(0, rows, rows, job.parts[0].seed)]

    def taken() -> float:
        experiment.fit(x, labels, [replace(method, recipe=replace(method.recipe, dim_out=0))], split, workers=1)
        begun = time.process_time()
        experiment.fit(x, labels, [method], split, workers=1)
        return time.process_time() - begun

    return kept.once("trained", kept.key("seconds", method.recipe, method.head, method.schedule, x, labels), taken)


def _together(
    jobs: Sequence[_Job], done: Sequence[_Done], n_seeds: int
) -> tuple[dict[str, dict[str, list[Answer]]], dict[str, list[Voted]]]:
    """Archive → method → its answers, and method → its votes: of what learns nothing, the same for every training."""
    answers: dict[str, dict[str, list[Answer]]] = {}
    voted: dict[str, list[Voted]] = {}
    for job, result in zip(jobs, done, strict=True):
        again = range(n_seeds if job.strict and not job.trained else 1)
        for archive, parts in result.answers.items():
            own = answers.setdefault(archive, {}).setdefault(job.arm.name, [])
            own += [
                replace(answer, split=replace(answer.split, repeat=answer.split.repeat + more))
                for more in again
                for answer in parts
            ]
        if job.strict:
            own = voted.setdefault(job.arm.name, [])
            own += [replace(vote, repeat=vote.repeat + more) for more in again for vote in result.voted]
    return answers, voted


def _about(job: _Job, result: _Done) -> dict[str, object]:
    arm = job.arm
    names = {"method": arm.name, "encoder": arm.encoder, "key": arm.about["key"]}
    return names | {"seconds": result.seconds if job.trained else np.nan, "bytes": stored(arm.method)}


def _of_groups(scores: Scores) -> pd.DataFrame:
    """A row per archive, method and k: group_mean, percent, of each group's queries first, as the tests compare."""
    names = ["archive", "method"]
    values = 100 * scores.values[SCORE].groupby([*names, "repeat", "group"], sort=False).mean()
    return values.groupby(names, sort=False).mean().stack(future_stack=True).rename("group_mean").reset_index()


def _f1(voted: Mapping[str, Sequence[Voted]]) -> pd.DataFrame:
    """A row per method: macro F1 of the first answer, and of the majority of 3 and of 5."""
    rows = answers.votes({"closed": voted})
    return rows.pivot(index="method", columns="k", values="macro_f1").add_prefix("f1_").reset_index()
