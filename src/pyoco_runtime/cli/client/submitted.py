"""What the user is told when a run was accepted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyoco_runtime.cli.client.session import Session


def tell(accepted: Mapping[str, Any], session: Session) -> None:
    """Print the answer; beside it the gateway's warnings, which name the flows that live workers announce."""
    session.screen.json(accepted)
    for warning in accepted.get("warnings") or ():
        session.note(130, warning=warning)
