"""The papers as ``CITATION.cff`` names them: the README's list of titles and notebooks."""

from typing import Any

import yaml

from lib import paths
from lib.results.papers import PAPERS, place


def references() -> list[dict[str, Any]]:
    """The papers of ``CITATION.cff``; ``abbreviation`` is the paper's name in :data:`lib.results.papers.PAPERS`."""
    return yaml.safe_load((paths.ROOT / "CITATION.cff").read_text(encoding="utf-8"))["references"]


def cited(reference: dict[str, Any]) -> str:
    """Title, authors, and what is known of year and place.

    >>> authors = [{"family-names": name} for name in ("Łażewski", "Cyganek")]
    >>> cited({"title": "Hyper-DINO", "authors": authors})
    '*Hyper-DINO* (Łażewski and Cyganek)'
    >>> cited({"title": "A tree", "authors": [{"name": "anonymous"}], "year": 2025, "notes": "under review"})
    '*A tree* (anonymous, 2025, under review)'
    """
    names = [author.get("family-names", author.get("name")) for author in reference["authors"]]
    told = " and ".join(names if len(names) < 3 else [names[0], "others"])
    isbn = f"ISBN {reference['isbn']}" if "isbn" in reference else None
    known = [reference.get("publisher", {}).get("name"), reference.get("year"), isbn, reference.get("notes")]
    return f"*{reference['title']}* ({', '.join(str(one) for one in [told, *known] if one)})"


def listed() -> str:
    """The papers and their notebooks as Markdown, and the notebooks that go beyond them."""
    about = {reference["abbreviation"]: f", {cited(reference)}" for reference in references()}
    notebooks: dict[str, list[str]] = {}
    for file in sorted(paths.NOTEBOOKS.glob("[1-9]*_*.ipynb")):
        notebooks.setdefault(place(file.stem)[0], []).append(f"[{file.stem[:2]}](notebooks/{file.name})")
    return "\n".join(
        f"* **{PAPERS[paper]}**{about.get(PAPERS[paper], '')}: {'·'.join(links)}" for paper, links in notebooks.items()
    )
