"""A vision transformer small enough to train on two processors: ``demo_vit``, and whatever is trained like it.

Plain linear patches learn next to nothing from a few thousand tiles; a convolutional stem does (Xiao et al. 2021,
"Early convolutions help transformers see better"). The feature is the [CLS] token of the last two blocks, joined to
384 numbers, the length of DINO ViT-S/16. It is not DINO ViT-S/16: 1.6 million weights, taught by drawn tiles.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import safetensors.torch
import torch
from timm.layers import resample_abs_pos_embed, trunc_normal_
from timm.models.vision_transformer import Block
from torch import Tensor, nn
from torchvision.transforms import v2

from lib import checks
from lib.encoders.backbones import Backbone, frozen, seeded
from lib.encoders.models import UNTRAINED
from lib.encoders.weights import fitting, read
from lib.errors import InputError
from lib.files import whole

NAME = "demo_vit"
WEIGHTS = Path(__file__).with_name(f"{NAME}.safetensors")
SIZE = 96
STRIDE = 16
WIDTHS = (32, 64, 96, 192)
DEPTH = 3
HEADS = 3
DIM = 2 * WIDTHS[-1]
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, as for most backbones


class SmallViT(nn.Module):
    """Four convolutions of stride 2, three transformer blocks of width 192; images (n, 3, h, w) to (n, 384)."""

    global_pool = "[CLS] of the last two blocks"
    pretrained_cfg: ClassVar = {
        "input_size": (3, SIZE, SIZE),
        "interpolation": "bilinear",
        "crop_pct": 1.0,
        "crop_mode": "squash",
        "mean": MEAN,
        "std": STD,
    }
    """What timm knows of its own networks."""

    def __init__(self) -> None:
        super().__init__()
        width = WIDTHS[-1]
        layers: list[nn.Module] = []
        for before, after in zip((3, *WIDTHS), WIDTHS, strict=False):
            convolution = nn.Conv2d(before, after, 3, stride=2, padding=1, bias=False)
            layers += [convolution, nn.BatchNorm2d(after), nn.ReLU(inplace=True)]
        self.stem = nn.Sequential(*layers, nn.Conv2d(width, width, 1))
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.position = nn.Parameter(torch.zeros(1, 1 + (SIZE // STRIDE) ** 2, width))
        self.blocks = nn.ModuleList(Block(width, HEADS, qkv_bias=True) for _ in range(DEPTH))
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.apply(_initialise)
        trunc_normal_(self.cls_token, std=0.02)
        trunc_normal_(self.position, std=0.02)

    def forward(self, images: Tensor) -> Tensor:
        """Features (n, 384) of normalised images (n, 3, h, w).

        Height and width are multiples of 16; the position embedding, learnt on 6 x 6 tokens, is interpolated.

        Raises ValueError for any other size.
        """
        height, width = images.shape[-2:]
        if height % STRIDE or width % STRIDE:
            raise ValueError(f"images are {height} x {width} pixels; both must be multiples of {STRIDE}")
        grid = [height // STRIDE, width // STRIDE]
        tokens = self.stem(images).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.cls_token.expand(len(images), -1, -1), tokens], dim=1)
        tokens = tokens + resample_abs_pos_embed(self.position, grid)
        classes = []
        for block in self.blocks:
            tokens = block(tokens)
            classes.append(self.norm(tokens[:, 0]))
        return torch.cat(classes[-2:], dim=-1)


def _initialise(module: nn.Module) -> None:
    """The usual initialisation of a vision transformer and, in the stem, of a residual network."""
    if isinstance(module, nn.Linear):
        trunc_normal_(module.weight, std=0.02)
        nn.init.zeros_(module.bias)
    elif isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")


def create(seed: int) -> SmallViT:
    """A network with random weights that depend on ``seed`` alone."""
    with seeded(seed):
        return SmallViT()


def load(weights: Path | None = WEIGHTS, name: str = NAME, seed: int = 0, **options: Any) -> Backbone:
    """A small vision transformer as a frozen encoder.

    weights: a file of :func:`save`, by default the one that comes with this package; None: random ones under ``seed``.
    name: of the encoder; "-untrained" is put behind it where ``weights`` is None.
    options: of :func:`lib.encoders.backbones.frozen`.

    Raises InputError for a weights file that is missing, damaged or of another network.
    """
    model = create(seed)
    about = f"untrained, seed {seed}" if weights is None else _fill(model, Path(weights))
    architecture = f"convolutional stem {WIDTHS}, {DEPTH} blocks, {HEADS} heads"
    encoder = frozen(model, name + UNTRAINED * (weights is None), architecture, about, **options)
    # torchvision's normalising rounds otherwise in the last bit: features stay what they are.
    return replace(encoder, normalise=v2.Compose([v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]))


def save(model: SmallViT, target: Path, about: str) -> None:
    """Write the weights to ``target`` in float16, half the size; :func:`load` makes float32 of them again.

    ``about``: how they came about; it travels with the file into the provenance of the encoder. Raises InputError for
    weights that are too large for float16, or not finite.
    """
    state = {key: _half(value) for key, value in model.state_dict().items()}
    with whole(target) as draft:
        draft.write_bytes(safetensors.torch.save(state, metadata={"about": about}))


def _half(value: Tensor) -> Tensor:
    value = value.detach().cpu().contiguous()
    if not value.is_floating_point():
        return value
    checks.fits("weights", value.abs().max().item(), 16, "train again with a lower learning rate")
    return value.half()


def _fill(model: SmallViT, file: Path) -> str:
    """Load ``file`` into ``model``; return what it says about itself. InputError names a file that does not fit."""
    if not file.is_file():
        raise InputError(
            f"There is no weights file {file}: train it with python -m lib.training.pretrain, or copy it there."
        )
    way_out = "Fetch the file again, or train it with python -m lib.training.pretrain."
    with fitting(file, "a small vision transformer", way_out):
        model.load_state_dict(read(file))
        with safetensors.safe_open(file, framework="pt") as opened:
            return (opened.metadata() or {}).get("about", "no record")
