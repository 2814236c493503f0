"""``python -m lib.pinned <module> [arguments]``: as ``python -m <module> [arguments]``, with the pins set first."""

import runpy
import sys

from lib import pins

if __name__ == "__main__":
    pins.pin()
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
