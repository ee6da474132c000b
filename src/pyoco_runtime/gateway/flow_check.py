"""What the gateway needs to know of a flow.yaml; the engine knows how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

FlowCheck = Callable[[bytes], Mapping[str, Any]]
"""Returns the default params of a flow.yaml that is right. Raises InvalidFlowFile. A large file takes a while."""
