"""What a linear classifier reads from embeddings: balanced multinomial logistic regression (scikit-learn)."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from lib.errors import InputError
from lib.heads.scaling import widths


def predictions(
    x: np.ndarray, labels: np.ndarray, queries: np.ndarray, *, scaled: bool = True, max_iter: int = 3000
) -> np.ndarray:
    """The classes (q,) of rows ``queries: (q, d)``, learnt from ``x: (n, d)`` and integer ``labels: (n,)``.

    Classes count alike, however many images they have. (Climbing the Label Tree, Section 4.4; published max_iter 3000.)
    scaled: every coordinate divided by its standard deviation in ``x``. As it is, the penalty on weights (C = 1) is one
    on short vectors: embeddings that lie near the centre of a ball, or classes that lie near each other, cannot be told
    apart although a line could (LT-18).
    Raises InputError where there is one class only; warns where the solver did not come to its end.

    >>> predictions(np.array([[0.0], [0.1], [1.0]]), np.array([0, 0, 1]), np.array([[0.2], [0.9]])).tolist()
    [0, 1]
    """
    if len(np.unique(labels)) < 2:
        raise InputError("a classifier needs images of two classes or more to learn from")
    if scaled:
        spread = widths(x.std(axis=0))
        x, queries = x / spread, queries / spread
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        try:
            model = LogisticRegression(class_weight="balanced", max_iter=max_iter).fit(x, labels)
        except ConvergenceWarning:
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = LogisticRegression(class_weight="balanced", max_iter=max_iter).fit(x, labels)
            warnings.warn(f"the classifier has not come to its end in {max_iter} iterations", stacklevel=2)
    return model.predict(queries)
