"""Is the difference real? Paired tests between recipes, as rows, as Markdown and as sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd

from lib.metrics.retrieval import PerQuery
from lib.metrics.significance import paired_permutation
from lib.results.store import Run, markdown_table
from lib.training.hyper_dino import Outcome
from lib.training.recipes import Recipe


def paired_tests(
    outcomes: Mapping[str, Sequence[Outcome]],
    groups: np.ndarray,
    folds_of: Mapping[str, np.ndarray],
    pairs: Sequence[tuple[Recipe, Recipe]],
    ks: Sequence[int],
    *,
    seed: int = 0,
) -> pd.DataFrame:
    """Paired permutation tests of MAP@k (min(k, relevant)) between recipes; groups of images are the unit.

    Args:
        outcomes: per fold rule, the outcomes of all recipes on all folds.
        groups: (n,) the group (patient, lesion, source image) of each image.
        folds_of: per fold rule, (n,) the test fold of each image.
        pairs: which recipe is compared with which.
        ks: list lengths.
        seed: of the random sign flips.

    Returns:
        One row per rule, pair and k: first, second, difference (first minus second, percentage points), p_value,
        p_floor (the smallest p that this test can give), n_units, low and high (95 % interval).
    """
    lines = []
    for rule, fold_of in folds_of.items():
        values = {(o.recipe, o.fold): o.per_query for o in outcomes[rule]}
        fold_ids = sorted(set(fold_of.tolist()))
        units = np.concatenate([groups[fold_of == fold] for fold in fold_ids])
        for first, second in pairs:
            for k in ks:
                a, b = ([values[recipe, fold] for fold in fold_ids] for recipe in (first, second))
                names = {"rule": rule, "first": first.name, "second": second.name, "k": k}
                lines.append(names | difference(a, b, units, k, seed=seed))
    return pd.DataFrame(lines)


def difference(
    first: Sequence[PerQuery], second: Sequence[PerQuery], units: np.ndarray, k: int, *, seed: int = 0
) -> dict[str, float]:
    """The paired test of AP@k (min(k, relevant), percent) between two methods on the same queries.

    Args:
        first, second: per split, the values of the same queries in the same order.
        units: the group of each query, splits one after the other.
        k: length of the list.
        seed: of the random sign flips.

    Returns:
        difference, p_value, p_floor, n_units, low and high, as :func:`paired_tests`.
    """
    a, b = (np.concatenate([part.values["ap_min", k].to_numpy() for part in parts]) for parts in (first, second))
    return asdict(paired_permutation(100 * a, 100 * b, groups=units, seed=seed))


def tests_layout(tests: pd.DataFrame, what: str = "folds") -> str:
    """The paired tests as Markdown; ``what`` heads the column of the rule."""
    rows = []
    for test in tests.itertuples():
        at_floor = test.p_value <= test.p_floor
        rows.append(
            {
                what: test.rule,
                "first": test.first,
                "second": test.second,
                "k": test.k,
                "first − second, pp": f"{test.difference:+.2f}",
                "95 % interval": f"{test.low:+.2f} to {test.high:+.2f}",
                "p": f"≤ {test.p_floor:.4f}" if at_floor else f"{test.p_value:.4f}",
                "groups": test.n_units,
            }
        )
    return markdown_table(pd.DataFrame(rows))


def verdicts(tests: pd.DataFrame, what: str = "folds", level: float = 0.05) -> list[str]:
    """One sentence per paired test, with three possible outcomes; ``what`` says what the rule is a rule for."""
    sentences = []
    for test in tests.itertuples():
        clear = "is better than" if test.difference > 0 else "is worse than"
        word = clear if test.p_value <= level else "is not clearly different from"
        sentences.append(f"k = {test.k}, {what} {test.rule}: {test.first} {word} {test.second}")
    return sentences


def save_tests(run: Run, tests: pd.DataFrame) -> None:
    """Write the paired tests."""
    text = (
        "Difference of MAP@k (min(k, relevant)) in percentage points, averaged per group first; two-sided sign-flip "
        "test with 10,000 resamples, percentile bootstrap over groups. p is not corrected for the number of rows."
    )
    title = f"Hyper-DINO, paired tests on {run.dataset}"
    run.save_table("table_tests", title, tests, tests_layout(tests), text)
