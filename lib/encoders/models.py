"""The nine frozen backbones of "Linear prototypes", Table I, as plain data: :mod:`lib.encoders.zoo` builds them.

Every feature is the class token of the last block after the final normalisation, also that of Virchow2, whose authors
join it with the mean of the patch tokens; of ResNet-50 it is the averaged feature map. Every input is 224 x 224, as in
the paper. The paper normalises all images with mean and deviation of ImageNet; here each model keeps its own
preprocessing: 0.5 instead for ``vit_b16``, and a margin of 5 or 10 percent cut off for ``dino_vits16``, ``vit_b16`` and
``resnet50_a1``. Which ViT-B/16 the paper means it does not say: ``vit_b16`` is timm's default.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SIZE = (3, 224, 224)
NO_DERIVATIVES, OWKIN, APACHE = "CC BY-NC-ND 4.0", "Owkin non-commercial", "Apache 2.0"


@dataclass(frozen=True)
class Model:
    """One row of Table I.

    row: the model's name there.
    architecture: timm's name, with the tag of the weights where timm registers them.
    dim: length of the feature.
    licence: of the weights.
    repository, file: on the hub, for weights that timm does not register.
    gated: the hub wants the terms accepted before it gives the weights out.
    swiglu: gated feed-forward layers, as timm's SwiGLUPacked.
    changes: to the architecture, as keyword arguments of ``timm.create_model``.
    preprocessing: where it differs from the default of this module or of timm, as fields of timm's PretrainedCfg.
    """

    row: str
    architecture: str
    dim: int
    licence: str
    repository: str = ""
    file: str = ""
    gated: bool = False
    swiglu: bool = False
    changes: Mapping[str, Any] = field(default_factory=dict)
    preprocessing: Mapping[str, Any] = field(default_factory=dict)


MODELS = {
    "uni": Model(
        "UNI",
        "vit_large_patch16_224",
        1024,
        NO_DERIVATIVES,
        "MahmoodLab/UNI",
        "pytorch_model.bin",
        gated=True,
        changes={"init_values": 1e-5},
        preprocessing={"interpolation": "bilinear"},
    ),
    "uni2_h": Model(
        "UNI2-h",
        "vit_giant_patch14_224",
        1536,
        NO_DERIVATIVES,
        "MahmoodLab/UNI2-h",
        "pytorch_model.bin",
        gated=True,
        swiglu=True,
        changes={
            "depth": 24,
            "num_heads": 24,
            "embed_dim": 1536,
            "mlp_ratio": 2 * 2.66667,
            "init_values": 1e-5,
            "no_embed_class": True,
            "reg_tokens": 8,
        },
        preprocessing={"interpolation": "bilinear"},
    ),
    "virchow2": Model(
        "Virchow2",
        "vit_huge_patch14_224",
        1280,
        NO_DERIVATIVES,
        "paige-ai/Virchow2",
        "model.safetensors",
        gated=True,
        swiglu=True,
        changes={"mlp_ratio": 5.3375, "init_values": 1e-5, "reg_tokens": 4},
    ),
    "phikon": Model(
        "Phikon",
        "vit_base_patch16_224",
        768,
        OWKIN,
        "owkin/phikon",
        "model.safetensors",
        preprocessing={"interpolation": "bilinear", "crop_mode": "squash"},
    ),
    "phikon_v2": Model(
        "Phikon-v2",
        "vit_large_patch16_224",
        1024,
        OWKIN,
        "owkin/phikon-v2",
        "model.safetensors",
        changes={"init_values": 1e-5},
    ),
    "dino_vits16": Model("DINO", "vit_small_patch16_224.dino", 384, APACHE),
    "dinov2_vitl14": Model(
        "DINOv2", "vit_large_patch14_dinov2.lvd142m", 1024, APACHE, preprocessing={"input_size": SIZE}
    ),
    "vit_b16": Model("ViT", "vit_base_patch16_224.augreg2_in21k_ft_in1k", 768, APACHE),
    "resnet50_a1": Model("ResNet50 A1", "resnet50.a1_in1k", 2048, APACHE),
}

UNTRAINED = "-untrained"
"""Behind a network's name: the same network with random weights."""

PACKAGED = ("efficientnet_lite0", "densenet121")
"""Networks whose weights come with the environment (:mod:`lib.encoders.packaged`)."""
OURS = (*MODELS, *PACKAGED, "efficientnet_lite0_96px", "demo_vit", "texture")
"""Names that :func:`lib.encoders.registry.make` knows without timm."""
