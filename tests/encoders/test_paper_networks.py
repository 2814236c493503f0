"""The networks of Hyperbolic Vision Transformers, by the names that the paper's pipeline has for them, from timm."""

import pytest
import torch
from timm.data import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD, resolve_model_data_config

from lib.datasets.pixels import Decoded
from lib.encoders import zoo
from lib.pipeline import profiles
from lib.training.finetune import thaw
from lib.training.photos import Preparation, central_views

HALF, IMAGENET = ((0.5,) * 3, (0.5,) * 3), (IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD)
NETWORKS = {
    "vit_small_patch16_224.augreg_in21k": (16, HALF),
    "deit_small_distilled_patch16_224.fb_in1k": (16, IMAGENET),
    "dino_vits16": (16, IMAGENET),
    "vit_small_patch8_224.dino": (8, IMAGENET),
}
"""Name → pixels of a patch's side (Section 2.5), mean and deviation of its pretraining."""


def test_these_are_the_networks_of_the_papers_pipeline():
    wanted = profiles.profile("paper")["features_few"]["encoders"]
    assert {name.removesuffix("-untrained") for name in wanted} == set(NETWORKS)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_of_the_paper_has_its_patches_and_normalisation_and_can_be_fine_tuned(name):
    """Its patches stay as they are (Section 3.2), and its images are normalised as in its pretraining."""
    patch, normalisation = NETWORKS[name]
    model = zoo.source(name).create(pretrained=False, num_classes=0)
    assert model.patch_embed.patch_size == (patch, patch) and model.num_features == 384
    assert model.blocks[0].attn.num_heads == 6  # ViT-S: the base version has 12
    known = resolve_model_data_config(model)
    assert (known["mean"], known["std"]) == normalisation and known["input_size"] == (3, 224, 224)
    thaw(model)
    frozen = {key.rpartition(".")[0] for key, weight in model.named_parameters() if not weight.requires_grad}
    assert frozen == {"patch_embed.proj"}
    seen = Preparation(224, 256).seen_by(model)
    grey = Decoded([torch.full((3, 256, 256), 128, dtype=torch.uint8)])
    mean, std = (torch.tensor(values)[:, None, None] for values in normalisation)
    (pixels,) = central_views(grey, seen, 1, torch.device("cpu"))
    torch.testing.assert_close(pixels, ((128 / 255 - mean) / std).expand(1, 3, 224, 224))
