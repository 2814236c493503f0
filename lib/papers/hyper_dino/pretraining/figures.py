"""How a self-distillation went."""

import math

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from lib.figures import style


def pretraining(history: pd.DataFrame, prototypes: int) -> Figure:
    """Loss, entropies and spread of the features over the steps, one panel each.

    history: columns step, loss, entropy, information, spread, as of :class:`lib.training.dino.Distilled`;
    prototypes: their number K; log K is the highest entropy there is.
    """
    step = history["step"] + 1
    mean_answer = history["entropy"] + history["information"]
    with style.house():
        figure, (loss, entropy, spread) = plt.subplots(1, 3, figsize=(style.WIDTH, 2.6))
        loss.plot(step, history["loss"], color=style.PALETTE[0])
        loss.set_ylabel("loss (nats)")
        entropy.axhline(math.log(prototypes), color="0.4", linestyle=":", label="log K, all equal")
        entropy.plot(step, mean_answer, color=style.PALETTE[1], linestyle="--", label="of the batch's mean answer")
        entropy.plot(step, history["entropy"], color=style.PALETTE[0], label="of one answer, mean")
        entropy.set_ylabel("teacher's entropy (nats)")
        spread.plot(step, history["spread"], color=style.PALETTE[0])
        spread.set_ylabel("spread of the features")
        for axis in (loss, entropy, spread):
            axis.set_xlabel("step")
            axis.set_ylim(bottom=0)
        figure.legend(*entropy.get_legend_handles_labels(), loc="outside lower center", ncols=3)
        plt.close(figure)
    return figure
