"""A head is kept without code, and embeds as before; what is no head of this version is named."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from lib.archive import heads, methods
from lib.errors import InputError

LABELS = np.repeat(np.arange(4), 12)
X = np.random.default_rng(0).normal(size=(48, 20)).astype(np.float32)


@pytest.mark.parametrize("name", methods.METHODS)
def test_every_method_embeds_as_before(name, tmp_path, quick):
    fitted = methods.fit_all(name, X, LABELS, (0, 0, 1, 1))
    heads.write(tmp_path / "head", fitted)
    again = heads.read(tmp_path / "head")
    assert again.method == fitted.method and again.space == fitted.space
    torch.testing.assert_close(again.embed(X), fitted.embed(X), rtol=0, atol=0)
    heads.write(tmp_path / "twice", again)
    assert (tmp_path / "twice").read_bytes() == (tmp_path / "head").read_bytes()


@pytest.mark.parametrize("of", ["os:system", "lib.files:sha256", "lib.training.methods:Gone"])
def test_nothing_but_settings_of_this_project_is_made(of, tmp_path):
    heads.write(tmp_path / "head", methods.fit_all("plain", X, LABELS))
    about = {"method": {"of": of, "fields": {}}, "seed": 0, "half": False, "numbers": 20}
    save_file(load_file(tmp_path / "head"), tmp_path / "head", {"about": json.dumps(about)})
    with pytest.raises(InputError, match="head is damaged, or was written by another version"):
        heads.read(tmp_path / "head")
