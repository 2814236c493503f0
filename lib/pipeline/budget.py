"""What the stages of profile gpu come to before they run: images, trainings and seconds of whole networks."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

from lib.datasets.categories import ASIDE

HALF = 0.5
"""Of the categories, or of the patients: those that are learnt from, and those that ask."""


@dataclass(frozen=True)
class Work:
    """Images learnt from and images looked at, each as often as it is seen; trainings; further seconds."""

    learnt: float
    seen: float
    trainings: int
    beside: float = 0.0

    def seconds(self, speed: dict[str, float]) -> float:
        """``speed``: settings plan.gpu, images per second and seconds."""
        there = self.learnt / speed["training_per_second"] + self.seen / speed["features_per_second"]
        return there + self.trainings * speed["training_seconds"] + speed["start_seconds"] + self.beside


def hyp_vit(given: dict[str, Any], n: int) -> Work:
    """Hyp, Sph and flat at each τ, then at each further rate; then each at its own and Sph at the τ of Hyp.

    And Hyp not clipped and with a learnt c, once each. ``n``: images in categories of two or more.
    """
    tries = 3 * (len(given["temperatures"]) + len(given["end_to_end_rates"]) - 1) * given["n_choosing"]
    short, steps = given["choosing_steps"] or given["steps"], given["steps"]
    chosen = 4 * given["n_trainings"] + 2
    learnt = given["n_classes"] * given["samples"] * (tries * short + chosen * steps)
    aside = ASIDE * HALF * n
    seen = tries * (_looks(short, given) * aside + n) + chosen * (_looks(steps, given) * (aside + HALF * n) + n) + n
    return Work(learnt, seen, tries + chosen)


def _looks(steps: int, given: dict[str, Any]) -> int:
    """How often the images set aside are looked at, before training and after the last step too."""
    return 1 + ceil(steps / given["check_every"])


def two_views(kinds: int, given: dict[str, Any], n: int) -> Work:
    """So many heads on so many splits, each image of a batch twice; all images are seen afterwards."""
    trainings = kinds * given["n_trainings"] * given["folds_used"]
    return Work(trainings * given["steps"] * 2 * given["end_to_end_batch"], (trainings + 1) * n, trainings)


def acir(given: dict[str, Any], n: int) -> Work:
    """ACIR and two rivals on half of the images; beside them, all five on maps of the frozen stem, on processors."""
    trainings = 3 * given["n_trainings"]
    learnt = HALF * n * given["end_to_end_epochs"]
    steps = given["end_to_end_epochs"] * ceil(HALF * n / given["batch_size"])
    frozen = steps * (HALF * 5 * len(given["rates"]) * given["n_choosing"] + trainings)
    return Work(trainings * learnt, (trainings + 1) * n, trainings, frozen * SECONDS_OF_A_STEP / PROCESSORS)


SECONDS_OF_A_STEP, PROCESSORS = 0.35, 16
"""Of ACIR's network on maps of a frozen stem, 128 images, on one processor; and how many there are beside the GPU."""

STAGES: dict[str, Callable[[dict[str, Any], int], Work]] = {
    "hyp_vit_retrieval": hyp_vit,
    "acir_ablations": acir,
    "label_tree_results": lambda given, n: two_views(4 if given["curved"] else 2, given, n),
    "hyper_dino_beyond": lambda given, n: two_views(2 * 2, given, n),  # the ball and its twin; by image and by group
}
"""Stage → what it comes to, from its parameters and the number of images."""
