"""Runs in the peer's interpreter: users of its client who submit runs while gateways come and go.

Arguments: how many runs, how many a second, and the gateways. A submit goes to each gateway in turn, over a connection
of its own; one that finds it away, or is answered 503, goes to the next. Prints a JSON line for every try.
"""

from __future__ import annotations

import json
import sys
import time

import httpx
from pyoco_server.http_client import PyocoHttpClient  # type: ignore[import-not-found]  # not in our environment

PATIENCE_SEC = 60.0


def main() -> None:
    """Submit them all."""
    count, per_sec = int(sys.argv[1]), float(sys.argv[2])
    gateways = sys.argv[3:]
    begin = time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, begin + number / per_sec - time.monotonic()))
        turn = number
        deadline = time.monotonic() + PATIENCE_SEC
        while not submitted(number, gateways[turn % len(gateways)]):
            turn += 1
            assert time.monotonic() < deadline, "no gateway takes it"
            time.sleep(0.02)


def submitted(number: int, url: str) -> bool:
    """Try once, and tell."""
    client = PyocoHttpClient(url)
    seconds = 1.0 if number % 25 == 0 else 0.01
    try:
        run_id = client.submit_run("nap", {"seconds": seconds}, tag="rolling")["run_id"]
    except httpx.HTTPStatusError as error:
        return tell(number, url, str(error.response.status_code)) and False
    except httpx.ConnectError:
        return tell(number, url, "refused") and False
    except (httpx.ReadError, httpx.RemoteProtocolError):
        return tell(number, url, "closed") and False
    finally:
        client.close()
    return tell(number, url, "accepted", run_id)


def tell(number: int, url: str, outcome: str, run_id: str | None = None) -> bool:
    """One line."""
    line = {"number": number, "url": url, "outcome": outcome, "run_id": run_id, "at": time.time()}
    print(json.dumps(line), flush=True)
    return True


if __name__ == "__main__":
    main()
