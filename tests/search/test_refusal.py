"""A query is refused with the reason, or answered."""

import numpy as np
import pytest

from lib.errors import InputError
from lib.search.refusal import Gate, refuse

KNOWN = np.array([0.1, 0.2, 0.3])


def test_a_limit_is_mean_and_three_deviations_unless_it_is_given():
    gate = Gate.of("rebuilt with an error of", KNOWN)
    assert gate.limit == pytest.approx(0.2 + 3 * np.sqrt(0.02 / 3))
    assert gate.share == 1.0
    assert Gate.of("rebuilt with an error of", KNOWN, limit=0.2).share == pytest.approx(2 / 3)


def test_the_reason_names_value_limit_and_how_many_known_images_pass():
    gate = Gate.of("rebuilt with an error of", KNOWN, limit=0.2)
    assert gate.reason(0.41) == "rebuilt with an error of 0.41, above 0.2, which 66.7 % of known images do not exceed"
    assert gate.reason(0.2) is None and gate.passes(0.2)


def test_a_query_is_answered_where_it_passes_all_gates_and_each_other_gate_gives_a_reason():
    gates = [Gate("bits to the nearest class:", 17, 1.0), Gate("rebuilt with an error of", 0.3, 0.99)]
    assert refuse(gates, [17, 0.3]) is None
    assert refuse(gates, [18, 0.1]).startswith("bits to the nearest class: 18, above 17")
    both = refuse(gates, [18, 0.4])
    assert both.count(";") == 1 and "error of 0.4" in both


def test_missing_and_undefined_scores_are_refused_in_words():
    gates = [Gate("rebuilt with an error of", 0.3, 1.0)]
    with pytest.raises(InputError, match="1 gates, but 2 scores"):
        refuse(gates, [0.1, 0.2])
    with pytest.raises(InputError, match="NaN"):
        refuse(gates, [float("nan")])
