"""The tree: organ, tissue, subtype; and what sets each subtype apart from the painter's defaults, in µm and shares."""

from typing import Any

ORGANS = {
    "colon": ("tumour", "glands", "muscle"),
    "breast": ("stroma", "adipose", "necrosis"),
    "lymph_node": ("lymphoid", "vessel"),
}
SUBTYPES: dict[str, dict[str, dict[str, Any]]] = {
    "tumour": {
        "well_differentiated": {"lumen": 0.36, "nucleus": 3.6, "wavy": 0.09},
        "moderately_differentiated": {"lumen": 0.22, "nucleus": 4.1, "wavy": 0.18},
        "cribriform": {"spacing": 115, "radius": 58, "lumen": 0.0, "holes": 0.25, "nucleus": 3.8},
        "solid": {"spacing": 120, "radius": 66, "lumen": 0.0, "nucleus": 4.7},
        "mucinous": {"spacing": 88, "radius": 32, "lumen": 0.16, "nucleus": 3.9, "mucin": True},
    },
    "glands": {
        "regular_crypts": {},
        "goblet_rich": {"goblet": 0.95, "lumen": 0.16},
        "goblet_poor": {"goblet": 0.12, "lumen": 0.24},
        "serrated_crypts": {"serrated": 0.32, "lumen": 0.4, "radius": 38},
        "atrophic_crypts": {"spacing": 92, "radius": 25, "cells": 0.75},
    },
    "muscle": {
        "compact_muscle": {},
        "loose_muscle": {"eosin": 0.75, "cleft": 0.2},
        "wavy_muscle": {"wave": 10.0, "over": 28.0, "cleft": 0.08},
        "cellular_muscle": {"spacing": 12.0},
        "cross_cut_muscle": {"cross": True},
    },
    "stroma": {
        "dense_collagen": {"eosin": 0.85, "cleft": 0.08},
        "wavy_collagen": {"wave": 15.0, "over": 22.0},
        "loose_stroma": {"eosin": 0.45, "cleft": 0.4, "width": 2.2},
        "desmoplastic_stroma": {"spacing": 13.0, "plump": 2.6, "eosin": 0.6},
        "hyalinised_stroma": {"eosin": 0.95, "spacing": 34.0, "width": 6.0, "cleft": 0.04},
    },
    "adipose": {
        "small_fat_cells": {"cell": 30.0},
        "regular_fat_cells": {},
        "large_fat_cells": {"cell": 66.0},
        "septate_fat": {"septum": 26.0},
        "inflamed_fat": {"inflamed": 0.7, "cell": 42.0},
    },
    "necrosis": {
        "coagulative_necrosis": {"ghosts": 0.9, "dust": 0.08, "cracks": 0.06},
        "comedo_necrosis": {"eosin": 0.8, "dust": 0.35},
        "purulent_debris": {"eosin": 0.4, "dust": 0.7, "cracks": 0.25},
        "mucous_debris": {"mucus": 0.9, "ghosts": 0.15, "cracks": 0.3},
        "calcified_debris": {"chalk": 0.15},
    },
    "lymphoid": {
        "small_lymphocytes": {},
        "germinal_centre": {"spacing": 9.4, "radius": 3.9, "rim": 0.35, "pale": 0.1},
        "diffuse_infiltrate": {"spacing": 9.6, "keep": 0.75, "eosin": 0.4},
        "plasma_cells": {"spacing": 10.2, "plasma": 1.0, "radius": 2.8},
        "open_sinus": {"pale": 0.4, "spacing": 8.2},
    },
    "vessel": {
        "capillaries": {"spacing": 34.0, "radius": 8.0},
        "venule": {"wall": 0.14, "filled": 0.5, "radius": 25.0, "wavy": 0.14},
        "arteriole": {"wall": 0.5, "filled": 0.3, "radius": 30.0, "wavy": 0.05},
        "congested_vein": {"spacing": 130.0, "radius": 52.0, "wall": 0.12, "filled": 0.9},
        "haemorrhage": {"bleeding": 0.55, "radius": 12.0, "spacing": 60.0},
    },
}
TREE = {organ: {tissue: tuple(SUBTYPES[tissue]) for tissue in tissues} for organ, tissues in ORGANS.items()}
