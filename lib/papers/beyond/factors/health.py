"""How trainings ended, said in one way wherever a row of notebook 90 speaks of several archives."""

import pandas as pd

from lib.results import answers, paired

SAID = (
    "Last loss: mean over the trainings behind a row, those of each fold rule once (a row of one archive: of its folds "
    "alone); each method's own, of no use between methods. At the rim: of the worst of these trainings."
)
"""What a caption says of :func:`cells`, and of the health of a row of one archive."""

COUNTED = (
    "At the rim: of the worst training of either head; with more than "
    f"{paired.MOST_AT_RIM:g} % it is held there, and enters no count."
)
"""What a caption says of tests of heads that may be at the rim."""


def cells(rows: pd.DataFrame) -> dict[str, str]:
    """The health of a method in several archives, as :func:`lib.results.answers.health`.

    rows: of one method, columns archive, loss, rim and steps. An archive is named "closed, by patient": what stands
    behind the comma is the fold rule, and the archives of one rule are asked through the same trainings.

    >>> archives = ["closed, by image", "closed, by patient", "open, by patient"]
    >>> cells(pd.DataFrame({"archive": archives, "loss": [0.1, 0.3, 0.3], "rim": [2.0, 0.0, 0.0], "steps": 30}))
    {'last loss': '0.200', 'at the rim': '2.0 %', 'steps': '30'}
    """
    rule = rows["archive"].str.partition(", ")[2]
    return answers.health(rows.groupby(rule).agg(answers.HEALTH).agg(answers.HEALTH))
