"""What is generated for readers: the README's findings, the page of all findings, and what is to be cited.

``python -m lib.pipeline.readme`` writes them. Every number is read from ``reports/``.
"""

from lib import errors


def update() -> None:
    """Bring the README's generated parts and the page of findings up to date."""
    from lib.pipeline import pages  # it needs torch and scipy, and a command is to begin at once

    pages.update()


if __name__ == "__main__":
    errors.one_message(update)
