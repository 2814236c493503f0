"""Where the weights of a network come from: a file of this machine, the hub, or a message that says how to get them."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import huggingface_hub
import timm
import torch
from safetensors import SafetensorError
from timm.models import PretrainedCfg, load_state_dict

from lib import paths
from lib.encoders.models import UNTRAINED
from lib.errors import InputError, MissingWeights

PROBE_SECONDS = 5
SUFFIXES = (".safetensors", ".pth", ".bin")

UNREADABLE = (OSError, LookupError, RuntimeError, ValueError, TypeError, AttributeError, SafetensorError)
"""What torch, safetensors and timm's renaming raise for a file of another network."""

# From the layout of transformers (ViTModel, Dinov2Model) to that of timm, in this order.
RENAMED = {
    r"^embeddings\.cls_token$": "cls_token",
    r"^embeddings\.position_embeddings$": "pos_embed",
    r"^embeddings\.patch_embeddings\.projection\.": "patch_embed.proj.",
    r"^layernorm\.": "norm.",
    r"^encoder\.layer\.": "blocks.",
    r"\.attention\.attention\.query\.": ".attn.qkv.",
    r"\.layernorm_before\.": ".norm1.",
    r"\.layernorm_after\.": ".norm2.",
    r"\.attention\.output\.dense\.": ".attn.proj.",
    r"\.intermediate\.dense\.": ".mlp.fc1.",
    r"\.output\.dense\.": ".mlp.fc2.",
    r"\.layer_scale([12])\.lambda1$": r".ls\1.gamma",
}
UNUSED = ("embeddings.mask_token", "pooler.")


@dataclass(frozen=True)
class Source:
    """What timm builds, and where its weights are.

    name: of the file in ``weights/``, without suffix, and in messages.
    cfg: timm's description: architecture, preprocessing, repository on the hub.
    file: on the hub, for a model that timm does not register and so cannot fetch; "" for all others.
    changes: to the architecture, as keyword arguments of ``timm.create_model``.
    licence, gated: of the weights; gated where the hub wants its terms accepted first.
    """

    name: str
    cfg: PretrainedCfg
    file: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)
    licence: str = ""
    gated: bool = False

    @property
    def model(self) -> str:
        """The architecture, and whose weights: timm's own name, or that of the repository behind it."""
        return f"{self.cfg.architecture} of {self.cfg.hf_hub_id}" if self.file else self.name

    @property
    def page(self) -> str:
        """The page of the repository on the hub."""
        return f"https://huggingface.co/{self.cfg.hf_hub_id.partition('@')[0]}"

    def create(self, **options: Any) -> torch.nn.Module:
        """The network; ``options`` of ``timm.create_model``."""
        return timm.create_model(self.cfg.architecture, pretrained_cfg=self.cfg, **self.changes, **options)

    def skeleton(self, **options: Any) -> torch.nn.Module:
        """The network without memory for its weights: for names, shapes and counts."""
        try:
            with torch.device("meta"):
                return self.create(pretrained=False, **options)
        except RuntimeError:  # older versions of timm cannot build every model without memory
            return self.create(pretrained=False, **options).to("meta")


def local_file(source: Source) -> Path | None:
    """The weights on this machine: a file in ``weights/``, else one in the Hugging Face cache."""
    for suffix in SUFFIXES:
        file = paths.WEIGHTS / f"{source.name}{suffix}"
        if file.is_file():
            return file
    if source.cfg.hf_hub_id:
        repo, _, revision = source.cfg.hf_hub_id.partition("@")
        for filename in ("model.safetensors", "pytorch_model.bin"):
            cached = huggingface_hub.try_to_load_from_cache(repo, filename, revision=revision or None)
            if isinstance(cached, str):
                return Path(cached)
    return None


def fetch(source: Source) -> Path:
    """Download the ``file`` of a model that timm does not register; its path in the Hugging Face cache.

    Raises MissingWeights where the hub cannot be reached or refuses.
    """
    repo, _, revision = source.cfg.hf_hub_id.partition("@")
    with downloading(source):
        return Path(huggingface_hub.hf_hub_download(repo, source.file, revision=revision or None))


@contextmanager
def downloading(source: Source) -> Iterator[None]:
    """A download of weights: where none can succeed, or it fails, MissingWeights with the way out.

    Without a connection the hub's own retries take most of a minute to say so; it is asked before.
    """
    if not source.cfg.has_weights:
        raise missing(source, "timm has none to download")
    if source.cfg.hf_hub_id:
        try:
            huggingface_hub.utils.get_session().head(huggingface_hub.constants.ENDPOINT, timeout=PROBE_SECONDS)
        except Exception as error:  # its class depends on the HTTP library of the installed huggingface_hub
            reason = f"{huggingface_hub.constants.ENDPOINT} cannot be reached ({one_line(error)[:200]})"
            raise missing(source, reason) from error
    try:
        yield
    except (OSError, huggingface_hub.errors.HTTPError) as error:
        raise missing(source, f"the download failed ({one_line(error)[:200]})") from error


@contextmanager
def fitting(file: Path, network: str, way_out: str) -> Iterator[None]:
    """Weights are read and loaded; InputError names the ``file`` if they are damaged or of another network."""
    try:
        yield
    except UNREADABLE as error:
        raise InputError(
            f"{file} cannot be used as weights of {network} ({one_line(error)[:200]}). {way_out}"
        ) from error


def read(file: Path) -> dict[str, torch.Tensor]:
    """The tensors in a weights file under their names; nothing in it is executed.

    Raises ValueError, saying what is wrong, for a file that is damaged or holds anything but finite named tensors.
    """
    try:
        state = load_state_dict(str(file), weights_only=True)
    except OSError:
        raise
    except Exception as error:  # junk can fail with anything, and torch's own words advise to execute what it holds
        why = f"it is damaged, or holds something else than named tensors ({type(error).__name__})"
        raise ValueError(why) from error
    if not state:
        raise ValueError("it holds no tensors")
    for name, value in state.items():
        if not isinstance(value, torch.Tensor):
            raise ValueError(f"{name!r} in it is no tensor")
        if not value.isfinite().all():
            raise ValueError(f"{name!r} in it holds NaN or infinity")
    return state


def missing(source: Source, reason: str) -> MissingWeights:
    """The message about missing weights: which, how large, under which licence, how to get them, where to put them."""
    text = f"No weights for {source.name} ({_size(source)}): none in {paths.WEIGHTS}, and {reason}. "
    if source.licence:
        text += f"Their licence: {source.licence}{', gated' if source.gated else ''}. "
    return MissingWeights(
        f"{text}{_way_out(source)}Without weights: 'texture', or '{source.name}{UNTRAINED}' as a random baseline."
    )


def _way_out(source: Source) -> str:
    """How to get the weights, and where to put them."""
    home = paths.WEIGHTS / source.name
    if source.gated:
        return (
            f"Accept the terms on {source.page}, run: hf auth login (in older versions huggingface-cli login), and "
            f"try again; or download {source.file} from that page and put it at {home}{Path(source.file).suffix}. "
        )
    if source.cfg.hf_hub_id:
        curl = f"curl -fL -o {source.name}.safetensors {source.page}/resolve/main/model.safetensors"
        return (
            f"On a connected machine run: {curl} (if that is refused, accept the terms on {source.page} and download "
            f"it there), then put the file at {home}.safetensors. "
        )
    if source.cfg.url:
        curl = f"curl -fL -o {source.name}.pth {source.cfg.url}"
        return f"On a connected machine run: {curl}, then put the file at {home}.pth. "
    return f"Put your own at {home}.safetensors. "


def _size(source: Source) -> str:
    """Approximate size of the weights in float32."""
    return f"about {sum(4 * tensor.numel() for tensor in source.skeleton().state_dict().values()) / 1e6:.0f} MB"


def from_transformers(state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """A state dict of transformers' ViTModel or Dinov2Model under timm's names; any other as it is.

    Queries, keys and values become the rows of one matrix, in this order. The pooler and the mask token, which take
    no part in the feature, are left out. Names that neither layout knows stay, so that a strict load refuses them.
    """
    if "embeddings.cls_token" not in state:
        return dict(state)
    named = {}
    for key, value in state.items():
        if key.startswith(UNUSED) or re.search(r"\.attention\.attention\.(key|value)\.", key):
            continue
        if ".attention.attention.query." in key:
            value = torch.cat([state[key.replace(".query.", f".{part}.")] for part in ("query", "key", "value")])
        named[_renamed(key)] = value
    return named


def _renamed(key: str) -> str:
    for pattern, replacement in RENAMED.items():
        key = re.sub(pattern, replacement, key)
    return key


def one_line(thing: object) -> str:
    return " ".join(str(thing).split()) or type(thing).__name__
