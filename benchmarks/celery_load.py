"""Drives the Celery side: `fill N` prints tasks per second from a full queue, `latency N` the milliseconds of each."""

import subprocess
import sys
import time

from celery_app import nothing


def main() -> None:
    what, count = sys.argv[1], int(sys.argv[2])
    if what == "latency":
        nothing.delay().get(timeout=30)
        for _ in range(count):
            begin = time.perf_counter()
            nothing.delay().get(timeout=30, interval=0.001)
            print((time.perf_counter() - begin) * 1000)
        return
    results = [nothing.delay() for _ in range(count)]
    command = [sys.executable, "-m", "celery", "-A", "celery_app", "worker", "-c", "2", "--loglevel", "ERROR"]
    worker = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        ended = sorted(result.get(timeout=120) for result in results)
    finally:
        worker.terminate()
        worker.wait()
    print(len(ended) / (ended[-1] - ended[0]))


if __name__ == "__main__":
    main()
