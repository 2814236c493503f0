"""The proof of the bits can fail: one bit makes another hash, another hash is said to be other."""

import json
import subprocess
import sys

import numpy as np
import pytest

from bench import bits
from lib import paths


def test_one_bit_makes_another_hash():
    x = np.ones(3, dtype=np.float32)
    other = np.nextafter(x, np.float32(2))
    assert bits.digest(x) == bits.digest(x.copy()) != bits.digest(other)
    assert bits.digest([x, "a"]) != bits.digest([other, "a"]) != bits.digest([other, "b"])


def test_every_step_gives_the_same_bits_in_another_process():
    code = "from lib import pins; pins.pin(); import json; from bench import bits; "
    code += "print(json.dumps({name: bits.digest(step(1)) for name, step in bits.STEPS.items()}))"
    command = [sys.executable, "-c", code]
    there = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, check=True)
    assert json.loads(there.stdout.splitlines()[-1]) == {name: bits.digest(run(1)) for name, run in bits.STEPS.items()}


def lines(sha256: str, seconds: float = 1.0) -> dict[str, dict]:
    return {step: {"step": step, "sha256": sha256, "seconds": seconds} for step in bits.STEPS}


def test_the_table_says_where_the_bits_are_other_what_was_not_reached_and_what_the_pins_cost():
    here, late = {True: lines("a"), False: lines("b")}, {"texture": lines("a")["texture"]}
    elsewhere = {"old": {True: lines("a", 9.0), False: lines("a", 9.0)}, "emulated": {True: late}}
    turns = {pinned: [lines("", seconds), lines("", 9.0)] for pinned, seconds in ((True, 3.0), (False, 2.0))}
    found = bits.table(here, elsewhere, {pinned: bits.quickest(several) for pinned, several in turns.items()})
    assert found["step"].tolist() == [*bits.STEPS] and set(found["price"]) == {1.5}
    assert set(found["old, pinned"]) == {"equal"} and set(found["old, plain"]) == {"other"}
    assert found["emulated, pinned"].tolist() == ["equal"] + ["not reached"] * (len(bits.STEPS) - 1)


@pytest.fixture
def started(monkeypatch, tmp_path) -> list[list[str]]:
    """The steps that every process was started for; the first process finishes one of them and is out of time."""
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    found: list[list[str]] = []

    def process(command, *, stdout, timeout, **rest):
        found.append(command[command.index("steps") + 3 :])
        reached = found[-1][: 1 if len(found) == 1 else None]
        stdout.writelines(json.dumps(lines("a")[step]) + "\n" for step in reached)
        if reached != found[-1]:
            raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(subprocess, "run", process)
    return found


def test_what_was_computed_is_kept_and_the_rest_is_reached_by_the_next_run(started):
    first, *rest = bits.STEPS
    assert [*bits.run(bits.HERE, True)] == [first]
    assert bits.run(bits.HERE, True) == bits.run(bits.HERE, True) == lines("a")
    assert started == [[first, *rest], rest]
    bits.run(bits.HERE, False), bits.run(bits.HERE, True, size=2), bits.run(bits.HERE, True, turn=1)
    assert started[2:] == [[first, *rest]] * 3


def test_another_processor_begins_anew(started, monkeypatch):
    before = bits.run(bits.HERE, True)
    monkeypatch.setattr(bits, "model", lambda: "another processor")
    assert len(before) == 1 and len(bits.run(bits.HERE, True)) == len(bits.STEPS) and started[0] == started[1]


def test_a_machine_is_compared_with_those_on_record_that_had_the_same_packages(monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "REPORTS", tmp_path)
    here = {True: lines("a"), False: lines("b")}
    assert bits.record(here) == bits.record(here) == {}  # not with itself
    monkeypatch.setattr(bits, "model", lambda: "another processor")
    (known,) = bits.record({True: lines("a"), False: lines("c")}).values()
    table = bits.table(here, {"other": known}, dict.fromkeys((True, False), bits.quickest([lines("")])))
    assert set(table["other, pinned"]) == set(table["other, plain"]) == {"equal"}
    monkeypatch.setattr(bits, "versions", lambda: "later ones")
    assert bits.record(here) == {}
