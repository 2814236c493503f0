"""What images hold, as one hash: two tables with the same names may show different pictures."""

import hashlib

from lib import files
from lib.datasets.table import ImageTable
from lib.errors import InputError


def content(images: ImageTable) -> str:
    """SHA-256 of the bytes of all image files, in the order of the table, and of their ids.

    Raises InputError for a file that cannot be read.
    """
    digest = hashlib.sha256()
    for number, image_id in enumerate(images.rows["image_id"]):
        path = images.path(number)
        try:
            digest.update(f"{image_id} {files.sha256(path)}\n".encode())
        except OSError as error:
            raise InputError(
                f"{path}: cannot be read ({error.strerror}). Restore it or take it out of the table."
            ) from error
    return digest.hexdigest()
