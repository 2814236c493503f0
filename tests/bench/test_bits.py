"""The proof of the bits can fail: one bit makes another hash, another hash is said to be other."""

import numpy as np
import pytest

from lib.bench import bits


def test_one_bit_makes_another_hash():
    x = np.ones(3, dtype=np.float32)
    other = np.nextafter(x, np.float32(2))
    assert bits.digest(x) == bits.digest(x.copy()) != bits.digest(other)
    assert bits.digest([x, "a"]) != bits.digest([other, "a"]) != bits.digest([other, "b"])


@pytest.mark.parametrize("step", bits.STEPS)
def test_a_step_gives_the_same_bits_twice(step):
    assert bits.digest(bits.STEPS[step](1)) == bits.digest(bits.STEPS[step](1))


def test_the_table_says_where_the_bits_are_other_and_what_the_pins_cost():
    def lines(sha256: str, seconds: float) -> dict[str, dict]:
        return {step: {"sha256": sha256, "seconds": seconds} for step in bits.STEPS}

    here = {True: lines("a", 1.0), False: lines("b", 1.0)}
    elsewhere = {"old": {True: lines("a", 9.0), False: lines("a", 9.0)}}
    found = bits.table(here, elsewhere, {True: lines("", 3.0), False: lines("", 2.0)})
    assert found["step"].tolist() == [*bits.STEPS] and set(found["price"]) == {1.5}
    assert set(found["old, pinned"]) == {"equal"} and set(found["old, plain"]) == {"other"}
