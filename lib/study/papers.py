"""What the papers are called."""

PAPERS = {
    "hyper_dino": "Hyper-DINO",
    "hyp_vit": "Hyp-ViT",
    "acir": "ACIR",
    "linear_prototypes": "Linear prototypes",
    "label_tree": "Label tree",
    "beyond": "Beyond the papers",
}
"""Short name, which notebooks, stages and folders carry, and the name for people."""


def place(notebook: str) -> tuple[str, str]:
    """The paper and the section that a notebook's file name without suffix tells.

    >>> place("13_hyper_dino_retrieval")
    ('hyper_dino', 'retrieval')
    """
    stage = notebook.partition("_")[2]
    paper = next(paper for paper in PAPERS if stage.startswith(f"{paper}_"))
    return paper, stage.removeprefix(f"{paper}_")
