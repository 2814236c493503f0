"""The page as files, for colleagues without a server: what every image of the archive would be answered."""

import base64
import shutil
from pathlib import Path

from lib import files
from lib.archive.app import content
from lib.archive.app.plane import Plane
from lib.archive.archive import Archive
from lib.errors import InputError
from lib.progress import track

KIND = "archive page"
POLICY = "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src data: blob:; base-uri 'none'"
NO_UPLOAD = f"This page has no server. Choose an image of the archive; the {content.K} nearest of each are kept here."


def export(archive: Archive, folder: Path) -> Path:
    """Write the page of ``archive`` into ``folder``, which appears whole; return the file to open.

    Raises InputError where ``folder`` lies in the archive's own, or holds anything but such a page.
    """
    folder = Path(folder).resolve()
    if archive.folder is not None and folder.is_relative_to(archive.folder):
        raise InputError(f"{folder} lies in the archive itself. Name another place: OUT=<folder>")
    ids = archive.rows.index.tolist()
    plane = Plane.of(archive.index.vectors(ids), archive.index.provenance.geometry)
    with files.whole(folder, KIND) as draft:
        shutil.copytree(content.PAGE, draft)
        page = draft / "index.html"
        page.write_text(_guarded(page.read_text(encoding="utf-8")), encoding="utf-8")
        (draft / "pictures").mkdir()
        answers = {}
        for number in track(ids, total=len(ids), what="answers", unit="images"):
            answers[number] = [content.of_archive(archive, number, apart) for apart in (True, False)]
            picture = base64.b64encode(archive.thumbnail(number)).decode()
            script = f'receive({number}, "data:image/jpeg;base64,{picture}");\n'
            (draft / "pictures" / f"{number}.js").write_text(script, encoding="utf-8")
        extra = {"upload": 0, "no_upload": NO_UPLOAD, "opinions": None, "answers": answers}
        about = content.script(content.overview(archive, plane) | extra)
        (draft / "data.js").write_text(about, encoding="utf-8")
    return folder / "index.html"


def _guarded(page: str) -> str:
    """The page with the rule that forbids it to load anything from elsewhere, which a server would send with it."""
    first = '<meta charset="utf-8">\n'
    return page.replace(first, f'{first}<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n', 1)
