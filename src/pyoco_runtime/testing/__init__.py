"""Public test tools: virtual time on both backends, stress, a real nats-server on a free port."""

from pyoco_runtime.testing.stress import stress_start_cancel
from pyoco_runtime.testing.virtual_time import run_virtual

__all__ = ["run_virtual", "stress_start_cancel"]
