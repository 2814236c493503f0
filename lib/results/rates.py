"""Learning rates: which of those that were tried is chosen, and the table of all of them."""

import pandas as pd

from lib.results.markdown import markdown_table


def choose_best(tried: pd.DataFrame, by: str = "method") -> pd.DataFrame:
    """``tried`` with the column chosen: the row of the highest validation of each ``by``, of equal ones the first.

    >>> tried = pd.DataFrame({"method": ["a"] * 3, "lr": [0.1, 0.2, 0.3], "validation": [60.0, 70.0, 70.0]})
    >>> choose_best(tried)["chosen"].tolist()
    [False, True, False]
    """
    return tried.assign(chosen=tried.index.isin(tried.groupby(by, sort=False)["validation"].idxmax()))


def best_rates(tried: pd.DataFrame, by: str = "method") -> dict[str, float]:
    """Method → the learning rate that was chosen for it; columns ``by``, lr and chosen.

    >>> best_rates(pd.DataFrame({"method": ["a", "a"], "lr": [0.1, 0.2], "chosen": [False, True]}))
    {'a': 0.2}
    """
    return tried[tried["chosen"]].set_index(by)["lr"].to_dict()


def rates_layout(tried: pd.DataFrame, by: str = "method", decimals: int = 2, **others: object) -> str:
    """What each learning rate gave as Markdown: a row per ``by``, a column per rate, the chosen one bold.

    tried: columns ``by``, lr, validation (percent, shown with so many ``decimals``) and chosen. others: columns behind
    the rates that hold one text in every row, or the text of each row.

    >>> tried = pd.DataFrame({"method": ["a", "a"], "lr": [0.1, 0.2], "validation": [60.0, 70.0]})
    >>> print(rates_layout(choose_best(tried), decimals=1, published="3e-05"))
    | method | 0.1 | 0.2 | published |
    | --- | --- | --- | --- |
    | a | 60.0 | **70.0** | 3e-05 |
    """
    shown = tried["validation"].map(f"{{:.{decimals}f}}".format)
    cells = shown.mask(tried["chosen"], "**" + shown + "**")
    wide = tried.assign(cell=cells, lr=tried["lr"].map("{:g}".format)).pivot_table(
        index=by, columns="lr", values="cell", aggfunc="first", sort=False
    )
    wide = wide.reindex(columns=sorted(wide.columns, key=float)).fillna("–")
    return markdown_table(wide.reset_index().assign(**others))
