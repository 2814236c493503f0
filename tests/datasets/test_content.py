"""Another picture under an old name is other content, wherever a training is kept by it."""

from collections import OrderedDict

import pandas as pd
import pytest
from PIL import Image
from torch import nn

from lib.datasets.content import content
from lib.datasets.table import ImageTable
from lib.errors import InputError
from lib.training import finetune, together
from lib.training.photos import Preparation

NAMES = [f"{number}.png" for number in range(8)]


@pytest.fixture
def images(tmp_path):
    for number, name in enumerate(NAMES):
        Image.new("RGB", (4, 4), (20 * number, 0, 0)).save(tmp_path / name)
    labels = [f"c{number // 2}" for number in range(8)]
    rows = pd.DataFrame({"image_id": NAMES, "path": NAMES, "label": labels, "group": NAMES})
    return ImageTable("mine", tmp_path, rows, "image")


def repaint(images: ImageTable) -> None:
    Image.new("RGB", (4, 4), (0, 99, 0)).save(images.root / NAMES[3])


def parts() -> tuple[nn.Module, nn.Module]:
    """An encoder that can be trained and a head, with weights that are always the same."""
    encoder, head = nn.Sequential(OrderedDict(stem=nn.Conv2d(3, 2, 1), last=nn.Conv2d(2, 2, 1))), nn.Linear(2, 2)
    encoder.pretrained_cfg = {"first_conv": "stem"}
    for parameter in nn.ModuleList([encoder, head]).parameters():
        nn.init.ones_(parameter)
    return encoder, head


def resumed(images: ImageTable) -> str:
    course = finetune._Training(*parts(), nn.Identity(), finetune.Settings(), together.fabric("cpu"), "")
    return course.key([images, images], Preparation(4, 4), 0, None)


@pytest.mark.parametrize(
    "key",
    [
        content,
        resumed,
    ],
    ids=["content", "a checkpoint"],
)
def test_a_repainted_image_changes_the_key_and_nothing_else_does(images, key):
    before = key(images)
    assert key(images) == before
    repaint(images)
    assert key(images) != before


def test_an_image_that_is_gone_is_named(images):
    (images.root / NAMES[3]).unlink()
    with pytest.raises(InputError, match=r"3\.png: cannot be read"):
        content(images)
