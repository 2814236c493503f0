"""What the papers are called."""

PAPERS = {
    "hyper_dino": "Hyper-DINO",
    "linear_prototypes": "Linear prototypes",
    "beyond": "Beyond the papers",
}
"""Short name, which notebooks, stages and folders carry, and the name for people."""
