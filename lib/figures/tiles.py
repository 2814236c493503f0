"""Images side by side."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from PIL import Image

from lib.figures import style


def row(images: Sequence[Image.Image], titles: Sequence[str]) -> Figure:
    """One row of images, each under its title."""
    with style.house():
        width = style.WIDTH
        figure, axes = plt.subplots(1, len(images), figsize=(width, width / len(images) + 0.35), squeeze=False)
        for axis, image, title in zip(axes[0], images, titles, strict=True):
            axis.imshow(image)
            axis.set_title(style.legible(title), fontsize=7)
            axis.set_axis_off()
        plt.close(figure)
    return figure
