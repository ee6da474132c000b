"""What every command works with: the gateway, the screen, and the user's language."""

from __future__ import annotations

import sys
from types import TracebackType

from attrs import define, field

from pyoco_runtime.cli.client.screen import Screen, note
from pyoco_runtime.client import PyocoHttpClient
from pyoco_runtime.messages import Language, language, text


@define
class Session:
    """One call of pyoco-client."""

    server: str
    client: PyocoHttpClient
    screen: Screen = field(factory=lambda: screen_of_stdout())
    lang: Language = field(factory=language)

    def say(self, number: int, **values: object) -> str:
        """A message of the catalogue in the user's language."""
        return text(f"MSG-PYOCO-{number:04d}", self.lang, **values)

    def note(self, number: int, **values: object) -> None:
        """Tell the person something that is not part of the result."""
        note(self.say(number, **values))

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.client.close()


def open_session(server: str, api_key: str | None, api_key_header: str) -> Session:
    """Connects at the first request, not here."""
    return Session(server, PyocoHttpClient(server, api_key=api_key, api_key_header=api_key_header))


def screen_of_stdout() -> Screen:
    """A person's screen on a terminal, plain lines elsewhere."""
    if not sys.stdout.isatty():
        return Screen()
    from pyoco_runtime.cli.client.terminal import Terminal  # rich takes a moment: a pipe does not wait for it

    return Terminal()
