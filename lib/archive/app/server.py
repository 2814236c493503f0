"""The page with a server behind it, for one archive: a question is an address or an uploaded image."""

import base64
import hashlib
import io
import socket
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from PIL import Image
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from lib import files
from lib.archive import keeping
from lib.archive.app import content, opinions
from lib.archive.app.plane import Plane
from lib.archive.archive import Archive
from lib.archive.thumbnails import small
from lib.datasets.images import FORMATS, read_image
from lib.errors import BrokenImage, InputError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
BYTES, PIXELS = 30 * 2**20, 50_000_000
"""The largest image that is taken."""
LARGE = {"side": 800, "quality": 90}
"""Of the JPEG of an image that is shown alone; side: the longer one, in pixels."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",  # an image that was removed is gone here as well
}


class Opened:
    """The archive in ``folder`` and its map, opened anew when somebody has saved another one there.

    Raises InputError as :meth:`Archive.load`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.said = opinions.beside(self.folder)
        self.decoding = threading.BoundedSemaphore(4)  # large images fill the memory
        self._alone = threading.Lock()
        self._now = self._load()

    def now(self) -> tuple[Archive, Plane, str]:
        """The archive, its map, and a text that changes when the archive does."""
        with self._alone:
            state = None
            try:
                if (state := keeping.state(self.folder)) not in (self._now[2], None):
                    self._now = self._load()
            except OSError:  # for a moment, while it is being replaced, there is none
                pass
            except InputError:
                if keeping.state(self.folder) == state:  # else it was saved while it was being read: the next time
                    raise
            return self._now

    def _load(self) -> tuple[Archive, Plane, str]:
        state, archive = keeping.state(self.folder), Archive.load(self.folder)
        with suppress(InputError):  # an archive of embeddings answers to its own images only
            archive.encoder()  # once, here: later many threads ask for it
        codes = archive.index.vectors(archive.rows.index.tolist())
        return archive, Plane.of(codes, archive.index.provenance.geometry), state


def app(folder: Path, host: str = LOOPBACK[0]) -> Starlette:
    """The page for the archive in ``folder``; InputError if there is none.

    host: the address that it is bound to. On a loopback address only requests to this computer's own names are
    answered, so that no foreign page can reach the archive through a name of its own.
    """
    names = [*map(_in_address, LOOPBACK)] if host in LOOPBACK else ["*"]
    guards = [Middleware(TrustedHostMiddleware, allowed_hosts=names), Middleware(BaseHTTPMiddleware, dispatch=_safe)]
    routes = [
        Route("/data.js", _data),
        Route("/pictures/{number:int}", _picture),
        Route("/large/{number:int}", _large),
        Route("/ask/{number:int}", _ask),
        Route("/ask", _ask_upload, methods=["POST"]),
        Route("/opinions", _keep, methods=["POST"]),
        Mount("/", StaticFiles(directory=content.PAGE, html=True)),
    ]
    messages = {InputError: _refused, HTTPException: _refused, Exception: _failed}
    served = Starlette(routes=routes, middleware=guards, exception_handlers=messages)
    served.state.opened = Opened(Path(folder))
    return served


async def _safe(request: Request, call_next: Any) -> Response:
    """Take what is sent by this page only, and forbid the page to load anything from elsewhere."""
    origin = request.headers.get("origin")
    if request.method != "GET" and origin and urlsplit(origin).netloc != request.headers.get("host"):
        response = JSONResponse({"message": "Only the page of this archive may send something here."}, 403)
    else:
        response = await call_next(request)
    response.headers.update(HEADERS)
    return response


def _refused(request: Request, error: Exception) -> Response:
    text, status = (error.detail, error.status_code) if isinstance(error, HTTPException) else (str(error), 422)
    return JSONResponse({"message": text}, status)


def _failed(request: Request, error: Exception) -> Response:
    return JSONResponse({"message": "Something failed here that should not. The window of make app says what."}, 500)


def _opened(request: Request) -> Opened:
    return request.app.state.opened


def _data(request: Request) -> Response:
    opened = _opened(request)
    archive, plane, state = opened.now()
    about = content.overview(archive, plane)
    try:
        archive.encoder()
        upload = {"upload": BYTES, "no_upload": ""}
    except InputError as error:
        upload = {"upload": 0, "no_upload": str(error)}
    extra = upload | {"opinions": str(opened.said), "state": state, "answers": None}
    return Response(content.script(about | extra), media_type="text/javascript")


def _picture(request: Request) -> Response:
    return Response(_opened(request).now()[0].thumbnail(request.path_params["number"]), media_type="image/jpeg")


def _large(request: Request) -> Response:
    """From the file that the image was read from, if it is still there and the same; else the thumbnail."""
    archive, number = _opened(request).now()[0], request.path_params["number"]
    picture = archive.thumbnail(number)
    with suppress(OSError, BrokenImage):
        file = Path(archive.rows.at[number, "path"])
        if files.sha256(file) == archive.rows.at[number, "sha256"]:
            picture = small(read_image(file), **LARGE)
    return Response(picture, media_type="image/jpeg")


def _ask(request: Request) -> Response:
    opened = _opened(request)
    archive, _, state = opened.now()
    apart, only = request.query_params.get("apart") == "1", request.query_params.getlist("class") or None
    answer = content.of_archive(archive, request.path_params["number"], apart, only)
    return _answered(opened, archive, answer | {"state": state})


async def _ask_upload(request: Request) -> Response:
    most = f"The image is too large: it may have {BYTES // 2**20} MB. Save a smaller one."
    if int(request.headers.get("content-length", 0)) > BYTES:
        raise HTTPException(413, most)
    taken = bytearray()
    async for part in request.stream():
        taken += part
        if len(taken) > BYTES:
            raise HTTPException(413, most)
    return await run_in_threadpool(_ask_image, request, bytes(taken))


def _ask_image(request: Request, taken: bytes) -> Response:
    opened = _opened(request)
    archive, plane, state = opened.now()
    apart, only = request.query_params.get("apart") == "1", request.query_params.getlist("class") or None
    patient = request.query_params.get("patient") if apart else None
    sha256 = hashlib.sha256(taken).hexdigest()
    with opened.decoding:
        image = decoded(taken)
        features = archive.encoder().encode([image])[0]
        picture = "data:image/jpeg;base64," + base64.b64encode(small(image, **LARGE)).decode()
    own = archive.rows.index[archive.rows["sha256"] == sha256]
    if len(own):  # the archive has this very image, and knows its patient
        patient = patient or (archive.rows.at[own[0], "patient"] if apart else None)
    answer = content.reply(archive, int(own[0]) if len(own) else features, patient, only)
    at = plane.place(archive.code(features))[0]
    return _answered(opened, archive, answer | {"sha256": sha256, "at": at, "picture": picture, "state": state})


def decoded(taken: bytes) -> Image.Image:
    """The image in these bytes; BrokenImage, in words for the page, if there is none or it is too large."""
    if not taken:
        raise BrokenImage("The file is empty. Choose another one.")
    width, height = _size(taken)
    if width * height > PIXELS:
        most = f"it may have {PIXELS // 10**6} million pixels. Cut a tile out of it"
        raise BrokenImage(f"The image is too large, {width:,} × {height:,}: {most}.")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "Your image"
        file.write_bytes(taken)
        try:
            return read_image(file)
        except BrokenImage as error:
            raise BrokenImage(str(error).replace(str(file), file.name)) from None


def _size(taken: bytes) -> tuple[int, int]:
    """Width and height as the file states them, before anything is decoded; (0, 0) where it states none."""
    with suppress(Exception), Image.open(io.BytesIO(taken), formats=FORMATS) as image:
        return image.size
    return 0, 0


def _answered(opened: Opened, archive: Archive, answer: dict[str, Any]) -> Response:
    """With what was said of these answers before."""
    said = opinions.latest(opened.said, answer["sha256"])
    known = {number: said.get(archive.rows.at[number, "sha256"]) for number in answer["ids"]}
    return JSONResponse(answer | {"opinions": {number: word for number, word in known.items() if word}})


async def _keep(request: Request) -> Response:
    if int(request.headers.get("content-length", BYTES)) > 10_000:
        raise HTTPException(413, "This is more than a yes or no.")
    try:
        said = dict(await request.json())
    except (ValueError, TypeError):
        raise HTTPException(422, "This is neither a yes nor a no.") from None
    return await run_in_threadpool(_keep_said, _opened(request), said)


def _keep_said(opened: Opened, said: dict[str, Any]) -> Response:
    rows, number = opened.now()[0].rows, said.get("answer")
    if said.get("said") not in opinions.SAID or not isinstance(number, int) or number not in rows.index:
        raise InputError("This is no yes or no to an image of the archive. Load the page again.")
    row = rows.loc[number]
    answer = {"answer": row["image_id"], "answer_sha256": row["sha256"], "label": row["label"]}
    given = {name: said.get(name) for name in ("query", "query_sha256", "rank", "distance", "left_out", "said")}
    opinions.keep(opened.said, **given, **answer)
    return JSONResponse({})


def bound(host: str, port: int) -> socket.socket:
    """A socket on this address; InputError if it is taken, or not of this computer. Port 0 is any that is free."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address, family=family, backlog=128)
    except (OSError, OverflowError) as error:
        why = str(getattr(error, "strerror", None) or error).partition(" (")[0]
        raise InputError(f"{host}, port {port} cannot be used ({why}). Choose another one: PORT={port + 1}") from None


def _in_address(host: str) -> str:
    """A host as an address of the web has it.

    >>> _in_address("::1"), _in_address("localhost")
    ('[::1]', 'localhost')
    """
    return f"[{host}]" if ":" in host else host


def serve(folder: Path, host: str, port: int) -> None:
    """Show the archive in ``folder`` until Ctrl-C."""
    taken = bound(host, port)  # first: to open an archive and its encoder takes longer
    served = app(folder, host)
    print(
        f"Open http://{_in_address(host)}:{taken.getsockname()[1]} in a browser on this computer. Ctrl-C ends it.",
        flush=True,
    )
    if host not in LOOPBACK:
        print(f"notice: whoever reaches {host} sees these images, without a password. Leave HOST out to be alone.")
    uvicorn.Server(uvicorn.Config(served, log_level="warning")).run(sockets=[taken])
