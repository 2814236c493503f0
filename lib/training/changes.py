"""Changes of colour and sharpness of a batch, each image by amounts of its own, as torchvision changes one image."""

import torch
from torch import Tensor
from torch.nn.functional import conv2d, pad

LUMINANCE = (0.2989, 0.587, 0.114)
"""What red, green and blue count in the grey of an image, as torchvision has it."""


def recoloured(x: Tensor, brightness: Tensor, contrast: Tensor, saturation: Tensor, hue: Tensor) -> Tensor:
    """Images ``x: (n, 3, h, w)`` from 0 to 1 with brightness, contrast, saturation, then hue changed.

    brightness, contrast, saturation: (n,) factors; hue: (n,) shares of the circle of colours to turn by, -0.5 to 0.5.
    """
    brightness, contrast, saturation, hue = (
        amounts.to(x)[:, None, None, None] for amounts in (brightness, contrast, saturation, hue)
    )
    x = (brightness * x).clamp(0, 1)
    x = _grey(x).mean((2, 3), keepdim=True).lerp(x, contrast).clamp(0, 1)
    x = _grey(x).lerp(x, saturation).clamp(0, 1)
    return _turned(x, hue)


def blurred(x: Tensor, sigma: Tensor, width: int) -> Tensor:
    """Images ``x: (n, 3, h, w)`` blurred by a Gaussian of ``width`` pixels, odd, and deviation ``sigma: (n,)``.

    Down and across one after the other; borders are mirrored.
    """
    half = width // 2
    weights = (-0.5 * (torch.arange(-half, half + 1, device=x.device) / sigma.to(x)[:, None]) ** 2).exp()
    weights = (weights / weights.sum(1, keepdim=True)).repeat_interleave(x.shape[1], dim=0)[:, None]
    y = pad(x, [half] * 4, mode="reflect").flatten(0, 1)[None]
    y = conv2d(conv2d(y, weights[..., None], groups=len(weights)), weights[:, :, None], groups=len(weights))
    return y[0].unflatten(0, x.shape[:2])


def _grey(x: Tensor) -> Tensor:
    return (x * torch.tensor(LUMINANCE, device=x.device)[:, None, None]).sum(1, keepdim=True)


def _turned(x: Tensor, hue: Tensor) -> Tensor:
    """Colours turned by ``hue``, value and saturation kept: an hexagon with red at 0, green at 2, blue at 4."""
    value, first = x.max(1, keepdim=True)
    chroma = value - x.amin(1, keepdim=True)
    red, green, blue = x.split(1, dim=1)
    beside = torch.cat([green - blue, blue - red, red - green], dim=1).gather(1, first)
    corner = 2 * first + beside / chroma.masked_fill(chroma == 0, 1) + 6 * hue
    away = (torch.tensor([5, 3, 1], device=x.device)[:, None, None] + corner) % 6
    return value - chroma * away.minimum(4 - away).clamp(0, 1)
