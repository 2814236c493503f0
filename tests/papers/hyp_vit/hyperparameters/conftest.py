"""Rows of Table 5 as the library lays them out, with numbers that are chosen by hand."""

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def rows() -> pd.DataFrame:
    """Five rows, of which the default and c = 1 were trained end to end, and the batch at another rate."""
    health = {"loss": 0.25, "rim": 0.0, "steps": 30, "seeds_spread": 1.0, "class_mean": 50.0, "chance": 5.0}
    lines = [
        ("none", np.nan, "default", 92.4, 92.6, 70.0, 70.0, 1e-3, 12),
        ("c", 1.0, "c = 1", 90.0, 89.2, 60.0, 65.0, 1e-3, 12),
        ("head_dim", 16.0, "16 numbers", 88.6, 83.3, 50.0, 50.0, 1e-3, 12),
        ("batch_size", 200.0, "batch of 4", 92.0, 91.9, 71.5, 71.5, 3e-4, 4),
        ("room", np.nan, "r = 1.15", np.nan, np.nan, 69.0, 69.0, 1e-3, 12),
    ]
    names = ("of", "value", "method", "encoder", "head", "hyp", "cosine", "lr", "batch")
    same = {"frozen": 75.0, "frozen_class_mean": 74.0, "room": 62.1, "clipped": 100.0} | health
    frame = pd.DataFrame([dict(zip(names, line, strict=True)) | same for line in lines])
    together = frame["method"].map({"default": (80.0, 78.0), "c = 1": (72.0, 66.0)})
    values = np.array([pair if isinstance(pair, tuple) else (np.nan, np.nan) for pair in together])
    spread = frame["method"].map({"default": 1.5, "c = 1": 0.5})
    return frame.assign(
        trained_encoder=values[:, 0],
        trained_encoder_spread=spread,
        trained_head=values[:, 1],
        trained_head_spread=np.nan,
    )
