"""Commands answer in seconds: what takes seconds to import is imported by those who use it."""

import subprocess
import sys

import pytest

from lib import paths

HEAVY = {"torch", "timm", "torchvision", "sklearn", "scipy", "skimage", "matplotlib", "seaborn"}


def imported(statements: str) -> set[str]:
    """The heavy packages that are there after ``statements``."""
    show = f"import sys\n{statements}\nprint(*({HEAVY} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", show], cwd=paths.ROOT, check=True, capture_output=True, text=True)
    return set(done.stdout.split("\n")[-2].split())


@pytest.mark.parametrize("module", ["reproduce", "notebooks", "code", "lab", "pages"])
def test_a_command_of_the_pipeline_needs_nothing_heavy_to_begin(module):
    assert imported(f"import lib.pipeline.{module}") == set()


@pytest.mark.parametrize("module", ["lib.datasets.fetch", "lib.datasets.__main__", "lib.encoders.__main__"])
def test_what_reads_images_waits_for_what_it_runs(module):
    assert imported(f"import {module}") == set()


@pytest.mark.parametrize("profile", ["demo", "sample"])
def test_a_plan_without_weights_to_download_needs_nothing_heavy(profile):
    assert imported(f"from lib.pipeline import plan; plan.text({profile!r})") == set()


def test_texture_and_reductions_do_not_wait_for_torch():
    assert "torch" not in imported("from lib.encoders import registry; registry.make('texture')")
    assert "torch" not in imported("from lib.heads import Reduction")


def test_a_mapper_does_not_wait_for_scikit_learn():
    assert "sklearn" not in imported("from lib.heads import HyperbolicMapper, PrototypeEncoder")
