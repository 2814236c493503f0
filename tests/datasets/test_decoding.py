"""Images decoded by other processes: in order, in parts of any size, and nothing stays where they handed them over."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lib import paths, processes
from lib.datasets import decoding
from lib.datasets.images import read_image


@pytest.fixture
def files(tmp_path):
    """Eleven images of unlike sizes, of which the eighth is broken and the tenth holds two pages."""
    random, pages = np.random.default_rng(0), {"save_all": True, "append_images": [Image.new("RGB", (3, 3))]}
    for number in range(11):
        pixels = random.integers(0, 256, (5 + number, 9, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{number:02d}.tif", **(pages if number == 9 else {}))
    (tmp_path / "07.tif").write_bytes(b"no image")
    return sorted(tmp_path.iterdir())


def handed_over() -> list[Path]:
    return [path for path in processes.shared().iterdir() if path.is_dir()]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("chunk", [1, 4, 5, 20])
def test_images_come_in_their_order_in_parts_of_any_size(files, chunk, workers, monkeypatch):
    monkeypatch.setattr(decoding, "CHUNK", 2)
    parts = list(decoding.stream(files, chunk=chunk, workers=workers))
    sizes = [len(part.images) for part in parts]
    assert set(sizes[:-1]) <= {chunk} and sum(sizes) == 11
    whole = decoding.joined(parts)
    for number, (image, file) in enumerate(zip(whole.images, files, strict=True)):
        assert image is None if number == 7 else np.array_equal(image, read_image(file))
    assert list(whole.reasons) == [7] and "07.tif" in whole.reasons[7]
    assert [named for named in whole.notices.values()] == [[str(files[9])]]
    assert handed_over() == []


def test_what_was_not_taken_is_gone_when_nobody_wants_more(files, monkeypatch):
    monkeypatch.setattr(decoding, "CHUNK", 1)
    parts = decoding.stream(files, workers=2)
    next(parts)
    parts.close()
    assert handed_over() == []


def test_who_decodes_knows_nothing_of_torch():
    """It takes seconds to import, in every process."""
    asked = "import json, sys, lib.datasets.decoding, lib.processes; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", asked], cwd=paths.ROOT, capture_output=True, text=True, check=True)
    assert {"torch", "pandas", "timm"}.isdisjoint(json.loads(done.stdout))
