"""Commands answer in seconds: what takes seconds to import is imported by those who use it."""

import subprocess
import sys

from lib import paths

HEAVY = {"torch", "timm", "torchvision", "sklearn", "scipy", "skimage", "matplotlib", "seaborn"}


def imported(statements: str) -> set[str]:
    """The heavy packages that are there after ``statements``."""
    show = f"import sys\n{statements}\nprint(*({HEAVY} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", show], cwd=paths.ROOT, check=True, capture_output=True, text=True)
    return set(done.stdout.split("\n")[-2].split())


def test_commands_and_plans_without_weights_to_download_need_nothing_heavy_to_begin():
    commands = [
        f"lib.pipeline.{name}"
        for name in ("reproduce", "notebooks", "code", "lab", "pages", "plan", "archive", "check")
    ]
    commands += ["lib.datasets.fetch", "lib.datasets.__main__", "lib.encoders.__main__"]
    plans = "\n".join(f"lib.pipeline.plan.text({profile!r})" for profile in ("demo", "sample"))
    assert imported(f"import {', '.join(commands)}\n{plans}") == set()


def test_texture_and_reductions_do_not_wait_for_torch():
    made = "from lib.encoders import registry; registry.make('texture'); from lib.heads import Reduction"
    assert "torch" not in imported(made)


def test_a_mapper_does_not_wait_for_scikit_learn():
    assert "sklearn" not in imported("from lib.heads import HyperbolicMapper, PrototypeEncoder")
