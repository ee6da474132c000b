"""What the gateway needs to know of a flow.yaml; the engine knows how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol


class CheckedFlow(Protocol):
    """A flow.yaml that is right."""

    @property
    def defaults(self) -> Mapping[str, Any]:
        """The params of a run that gives none."""

    @property
    def registered(self) -> tuple[str, ...]:
        """The tasks that a worker must offer, because the file does not say where they are."""


FlowCheck = Callable[[bytes], CheckedFlow]
"""Reads a flow.yaml. Raises InvalidFlowFile. A large file takes a while."""
