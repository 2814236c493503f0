"""A Milvus server on this machine for tests and the bench, from the package ``milvus`` (Linux on x86_64 only).

It answers whoever can reach this machine, without a password: for made-up points, and for minutes.
"""

import atexit
import functools
import importlib.util
import os
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Self

START = 120
"""Seconds that a start may take; on two busy processors it takes about 10."""

ETCD = """\
listen-client-urls: http://127.0.0.1:{client}
advertise-client-urls: http://127.0.0.1:{client}
listen-peer-urls: http://127.0.0.1:{peer}
initial-advertise-peer-urls: http://127.0.0.1:{peer}
initial-cluster: default=http://127.0.0.1:{peer}
"""
"""Ports of the server's own small database of settings, which would otherwise be the same for all servers."""


class Server:
    """A server whose data lie in ``folder``; a context that starts it and ends it.

    ``url`` stays the same when it is started again. :meth:`kill` ends it without a warning, as a power cut would.
    """

    def __init__(self, folder: Path) -> None:
        import milvus

        ports = milvus.MilvusServerConfig().config_key_maps.values()
        ports = [name for name in ports if name.endswith("_port")]
        free = dict(zip(ports, _free_ports(len(ports)), strict=True))
        config = milvus.MilvusServerConfig(data_dir=str(folder), **free)
        config.set("common.session.ttl", 3)  # seconds after which a server that was killed counts as gone, not 30
        config.set("common.gracefulStopTimeout", 5)
        config.resolve()
        milvus._initialize_data_files(str(folder))
        self.folder, self.url, self.process = folder, f"http://127.0.0.1:{free['proxy_port']}", None
        self.health, client, peer = _free_ports(3)
        self.etcd = folder / "configs" / "etcd.yaml"
        self.etcd.write_text(ETCD.format(client=client, peer=peer))

    def start(self) -> Self:
        """Start the server and wait until it answers."""
        programs = self.folder / "bin"
        variables = os.environ | {
            "DEPLOY_MODE": "STANDALONE",
            "ETCD_CONFIG_PATH": str(self.etcd),
            "METRICS_PORT": str(self.health),
            "MILVUS_RUN_DIR": str(self.folder / "run"),
            "LD_LIBRARY_PATH": str(programs),
        }
        with (self.folder / "logs" / "output.log").open("a") as log:
            self.process = subprocess.Popen(
                [programs / "milvus", "run", "standalone"], cwd=self.folder, env=variables, stdout=log, stderr=log
            )
        end = time.monotonic() + START
        while not self._healthy():
            if self.process.poll() is not None or time.monotonic() > end:
                self.kill()
                raise RuntimeError(f"the Milvus server did not start; its log is {log.name}")
            time.sleep(0.2)
        return self

    def kill(self) -> None:
        """End the server at once, whatever it is doing."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def stop(self) -> None:
        """Ask the server to end."""
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.kill()
            self.process = None

    def _healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.health}/healthz", timeout=5) as answer:
                return b"OK" in answer.read()
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False

    __enter__ = start

    def __exit__(self, *_: object) -> None:
        self.kill()


def installed() -> bool:
    return importlib.util.find_spec("milvus") is not None


@functools.cache
def running() -> Server:
    """A server that runs until this program ends, and whose data are gone then."""
    stack = ExitStack()
    atexit.register(stack.close)
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="milvus_server"))
    return stack.enter_context(Server(Path(folder)))


def _free_ports(n: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
