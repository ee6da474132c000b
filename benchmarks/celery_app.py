"""The same nothing as a Celery task; run by the peers' interpreter."""

import os
import time

from celery import Celery

app = Celery("noop", broker=os.environ["REDIS_URL"], backend=os.environ["REDIS_URL"])


@app.task
def nothing():
    return time.time()
