"""Asks the process in this container whether it is well: `healthcheck.py /health` or `healthcheck.py /ready`."""

from __future__ import annotations

import os
import sys
import urllib.request

TIMEOUT_SEC = 4.0  # below the time-out of the engine, so that its log has our reason and not its own


def main(path: str) -> int:
    """0 if the answer is 200, else 1 with the reason on stdout, where engines keep it."""
    setting, default = (
        ("PYOCO_WORKER_PROBE_PORT", 8081) if os.environ.get("PYOCO_ROLE") == "worker" else ("PYOCO_PORT", 8000)
    )
    url = f"http://127.0.0.1:{os.environ.get(setting) or default}{path}"
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SEC):
            return 0
    except OSError as error:  # an answer of 400 and above is one too
        print(f"{url}: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
