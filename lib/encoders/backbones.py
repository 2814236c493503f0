"""Frozen backbones from timm: one image in, one vector out, nothing trainable.

The vector is what the model itself pools when its classifier is taken off: for the vision transformers of the papers
the normalised [CLS] token, for convolutional networks the averaged feature map; ``provenance["pooling"]`` says which.
"""

import difflib
import hashlib
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import huggingface_hub
import numpy as np
import timm
import torch
from PIL import Image
from safetensors import SafetensorError
from timm.data import create_transform, resolve_model_data_config
from timm.models import PretrainedCfg, get_pretrained_cfg, load_state_dict

from lib import paths
from lib.errors import InputError, MissingWeights

ALIASES = {"dino_vits16": "vit_small_patch16_224.dino"}
UNTRAINED = "-untrained"
PROBE_SECONDS = 5

UNREADABLE = (OSError, EOFError, RuntimeError, ValueError, pickle.UnpicklingError, SafetensorError)


@dataclass(frozen=True, eq=False)
class Backbone:
    """A frozen timm model with its own preprocessing, behind the interface of an encoder."""

    name: str
    dim: int
    provenance: dict[str, str]
    model: torch.nn.Module
    transform: Callable[[Image.Image], torch.Tensor]
    device: torch.device
    bf16: bool
    batch_size: int

    @torch.inference_mode()
    def encode(self, images: Sequence[Image.Image]) -> np.ndarray:
        """Features of images of any size and mode as (n, dim) float32, computed ``batch_size`` at a time."""
        values = np.empty((len(images), self.dim), dtype=np.float32)
        for start in range(0, len(images), self.batch_size):
            chunk = images[start : start + self.batch_size]
            pixels = torch.stack([self.transform(image.convert("RGB")) for image in chunk])
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
                features = self.model(pixels.to(self.device))
            values[start : start + len(chunk)] = features.float().cpu().numpy()
        return values


def load(
    name: str,
    weights: str = "pretrained",
    device: str | None = None,
    bf16: bool = False,
    batch_size: int = 64,
    seed: int = 0,
) -> Backbone:
    """A timm model as a frozen encoder.

    name: a timm name with or without its weights tag ("vit_small_patch16_224.dino"), or one of :data:`ALIASES`.
    weights: "pretrained": from ``weights/<timm name>.safetensors`` or ``.pth``, else from the Hugging Face cache,
        else downloaded by timm; "untrained": timm's random initialisation under ``seed``, "-untrained" in the name.
    device: "cpu", "cuda", ...; by default cuda where there is one.
    bf16: bfloat16 autocast: faster, about three significant digits.
    batch_size: images per forward pass.

    Raises InputError for a name that timm does not know or a weights file that does not fit, MissingWeights
    where trained weights cannot be had.
    """
    if weights not in ("pretrained", "untrained"):
        raise InputError(f"weights must be 'pretrained' or 'untrained', not {weights!r}.")
    cfg = _configuration(name)
    timm_name = f"{cfg.architecture}.{cfg.tag}" if cfg.tag else cfg.architecture
    if weights == "untrained":
        name += UNTRAINED
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = timm.create_model(timm_name, pretrained=False, num_classes=0)
    else:
        model = _pretrained(timm_name, cfg)
    target = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    model = model.eval().requires_grad_(False).to(target)
    data = resolve_model_data_config(model)
    transform = create_transform(**data, is_training=False)
    with torch.inference_mode():
        dim = model(torch.zeros(1, *data["input_size"], device=target)).shape[1]
    provenance = {
        "encoder": name,
        "model": timm_name,
        "weights": weights if weights == "pretrained" else f"untrained, seed {seed}",
        "weights_sha256": state_sha256(model),
        "pooling": one_line(getattr(model, "global_pool", "the model's own")),
        "transform": one_line(transform),
        "dtype": "bfloat16 autocast" if bf16 else "float32",
        "timm": timm.__version__,
    }
    return Backbone(name, dim, provenance, model, transform, target, bf16, batch_size)


def state_sha256(model: torch.nn.Module) -> str:
    """SHA-256 over names, dtypes, shapes and bytes of a model's parameters and buffers, in order of name."""
    digest = hashlib.sha256()
    for key, tensor in sorted(model.state_dict().items()):
        digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _configuration(name: str) -> PretrainedCfg:
    """timm's description of the pretrained weights behind a name or alias."""
    try:
        return get_pretrained_cfg(ALIASES.get(name, name), allow_unregistered=False)
    except RuntimeError:
        known = [*ALIASES, "demo_vit", "texture", *timm.list_models(), *timm.list_pretrained()]
        matches = difflib.get_close_matches(name, known, n=5, cutoff=0.5)
        hint = f"did you mean {', '.join(matches)}?" if matches else "see timm.list_models() for the names."
        raise InputError(f"Unknown encoder {name!r}: {hint}") from None


def _pretrained(timm_name: str, cfg: PretrainedCfg) -> torch.nn.Module:
    """The model with trained weights and without its classifier."""
    file = _weights_file(timm_name, cfg)
    if file is None:
        _ask_hub(timm_name, cfg)
        try:
            model = timm.create_model(timm_name, pretrained=True)
        except (OSError, huggingface_hub.errors.HTTPError) as error:
            raise _missing(timm_name, cfg, f"the download failed ({one_line(error)[:200]})") from error
    else:
        # With its own classifier the model loads strictly: a file that does not fit is an error, not random weights.
        try:
            overlay = {"state_dict": load_state_dict(str(file), weights_only=True)}
            model = timm.create_model(timm_name, pretrained=True, pretrained_cfg_overlay=overlay)
        except UNREADABLE as error:
            raise InputError(
                f"{file} cannot be used as weights of {timm_name} ({one_line(error)[:200]}). "
                "Fetch the file again, or remove it."
            ) from error
        model.pretrained_cfg.pop("state_dict")
    model.reset_classifier(0)
    return model


def _weights_file(timm_name: str, cfg: PretrainedCfg) -> Path | None:
    """The weights on this machine: a file in ``weights/``, else one in the Hugging Face cache."""
    for suffix in (".safetensors", ".pth"):
        file = paths.WEIGHTS / f"{timm_name}{suffix}"
        if file.is_file():
            return file
    if cfg.hf_hub_id:
        repo, _, revision = cfg.hf_hub_id.partition("@")
        for filename in ("model.safetensors", "pytorch_model.bin"):
            cached = huggingface_hub.try_to_load_from_cache(repo, filename, revision=revision or None)
            if isinstance(cached, str):
                return Path(cached)
    return None


def _ask_hub(timm_name: str, cfg: PretrainedCfg) -> None:
    """Raise MissingWeights where no download can succeed: the hub's own retries take most of a minute to say so."""
    if not cfg.has_weights:
        raise _missing(timm_name, cfg, "timm has none to download")
    if cfg.hf_hub_id:
        try:
            huggingface_hub.utils.get_session().head(huggingface_hub.constants.ENDPOINT, timeout=PROBE_SECONDS)
        except Exception as error:  # its class depends on the HTTP library of the installed huggingface_hub
            reason = f"{huggingface_hub.constants.ENDPOINT} cannot be reached ({one_line(error)[:200]})"
            raise _missing(timm_name, cfg, reason) from error


def _missing(timm_name: str, cfg: PretrainedCfg, reason: str) -> MissingWeights:
    """The message about missing weights: which, how large, how to get them, where to put them."""
    home = f"{paths.WEIGHTS / timm_name}.safetensors"
    text = f"No weights for {timm_name} ({_size(timm_name)}): none in {paths.WEIGHTS}, and {reason}. "
    if cfg.hf_hub_id:
        page = f"https://huggingface.co/{cfg.hf_hub_id.partition('@')[0]}"
        text += (
            f"On a connected machine run: curl -fL -o {timm_name}.safetensors {page}/resolve/main/model.safetensors "
            f"(if that is refused, accept the terms on {page} and download it there), then put the file at {home}. "
        )
    elif cfg.url:
        home = f"{paths.WEIGHTS / timm_name}.pth"
        text += f"On a connected machine run: curl -fL -o {timm_name}.pth {cfg.url}, then put the file at {home}. "
    else:
        text += f"Put your own at {home}. "
    return MissingWeights(text + f"Without weights: 'texture', or '{timm_name}{UNTRAINED}' as a random baseline.")


def _size(timm_name: str) -> str:
    """Approximate size of the weights in float32."""
    try:
        with torch.device("meta"):
            model = timm.create_model(timm_name, pretrained=False)
    except RuntimeError:  # older versions of timm cannot build every model without memory
        model = timm.create_model(timm_name, pretrained=False)
    return f"about {sum(4 * tensor.numel() for tensor in model.state_dict().values()) / 1e6:.0f} MB"


def one_line(thing: object) -> str:
    return " ".join(str(thing).split()) or type(thing).__name__
