"""The texts that users read, in English and Japanese, by MSG id."""

from pyoco_runtime.messages.catalogue import Language, language, text

__all__ = ["Language", "language", "text"]
