"""The papers as ``CITATION.cff`` names them: the README's list of titles and notebooks."""

from typing import Any

import yaml

from lib import paths
from lib.results.papers import PAPERS, place


def references() -> list[dict[str, Any]]:
    """The papers of ``CITATION.cff``; ``abbreviation`` is the paper's name in :data:`lib.results.papers.PAPERS`."""
    return yaml.safe_load((paths.ROOT / "CITATION.cff").read_text(encoding="utf-8"))["references"]


def cited(reference: dict[str, Any]) -> str:
    """Title with its address, authors, and what is known of year and place.

    >>> authors = [{"family-names": name} for name in ("Łażewski", "Cyganek")]
    >>> cited({"title": "Hyper-DINO", "authors": authors})
    '*Hyper-DINO* (Łażewski and Cyganek)'
    >>> tree = {"title": "A tree", "url": "https://a.org/1", "authors": [{"name": "anonymous"}], "year": 2025}
    >>> cited(tree | {"notes": "under review"})
    '[*A tree*](https://a.org/1) (anonymous, 2025, under review)'
    """
    names = [author.get("family-names", author.get("name")) for author in reference["authors"]]
    written = " and ".join(names if len(names) < 3 else [names[0], "others"])
    isbn = f"ISBN {reference['isbn']}" if "isbn" in reference else None
    known = [reference.get("publisher", {}).get("name"), reference.get("year"), isbn, reference.get("notes")]
    title = f"*{reference['title']}*"
    title = f"[{title}]({reference['url']})" if "url" in reference else title
    return f"{title} ({', '.join(str(part) for part in [written, *known] if part)})"


def listed() -> str:
    """The papers and their notebooks as Markdown, and the notebooks that go beyond them."""
    about = {reference["abbreviation"]: f" {cited(reference)}." for reference in references()}
    notebooks: dict[str, list[str]] = {}
    for file in sorted(paths.NOTEBOOKS.glob("[1-9]*_*.ipynb")):
        notebooks.setdefault(place(file.stem)[0], []).append(f"[{file.stem[:2]}](notebooks/{file.name})")
    return "\n".join(
        f"* **{PAPERS[paper]}**:{about.get(PAPERS[paper], '')} Notebooks {'·'.join(links)}"
        for paper, links in notebooks.items()
    )
