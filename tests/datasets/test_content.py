"""Another picture under an old name is other content."""

import pandas as pd
import pytest
from PIL import Image

from lib.datasets.content import content
from lib.datasets.table import ImageTable
from lib.errors import InputError


def test_a_repainted_image_changes_the_content_and_one_that_is_gone_is_named(tmp_path):
    names = [f"{number}.png" for number in range(4)]
    for number, name in enumerate(names):
        Image.new("RGB", (4, 4), (20 * number, 0, 0)).save(tmp_path / name)
    rows = pd.DataFrame({"image_id": names, "path": names, "label": list("aabb"), "group": names})
    images = ImageTable("mine", tmp_path, rows, "image")
    before = content(images)
    assert content(images) == before != content(images.take(names[::-1]))
    Image.new("RGB", (4, 4), (0, 99, 0)).save(tmp_path / names[3])
    assert content(images) != before
    (tmp_path / names[3]).unlink()
    with pytest.raises(InputError, match=r"3\.png: cannot be read"):
        content(images)
