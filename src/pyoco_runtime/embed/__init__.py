"""A worker inside somebody else's asyncio or trio program."""

from pyoco_runtime.embed.embedded_worker import EmbeddedWorker
from pyoco_runtime.embed.entry import worker

__all__ = ["EmbeddedWorker", "worker"]
