"""A YAML text that knows on which line each key stands, and that cannot be made to explode."""

from __future__ import annotations

from typing import Any

import yaml
from attrs import frozen

from pyoco_runtime.errors import InvalidFlowFile

MAX_NODES = 100_000  # a text of 256 KiB holds fewer, unless its aliases multiply them


@frozen
class YamlFile:
    """The value and where its parts stand."""

    value: Any
    _root: yaml.Node

    def line(self, *keys: str) -> int | None:
        """The line of the key at this path; None if it is not there."""
        node, line = self._root, None
        for key in keys:
            pairs = node.value if isinstance(node, yaml.MappingNode) else ()
            found = [(name, value) for name, value in pairs if name.value == key]
            if not found:
                return None
            name, node = found[-1]
            line = name.start_mark.line + 1
        return line


def read_yaml(text: str) -> YamlFile:
    """Read a safe YAML text. Raises InvalidFlowFile."""
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        if root is None:
            raise InvalidFlowFile("the file is empty: it needs flow.graph, as `flow: {graph: a >> b}`")
        _refuse_explosion(root)
        return YamlFile(loader.construct_document(root), root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise InvalidFlowFile(f"the file is not YAML: {where}{error.problem or error.context}") from error
    except yaml.YAMLError as error:  # characters that YAML does not allow
        raise InvalidFlowFile(f"the file is not YAML: {str(error).splitlines()[0]}") from error
    except ValueError as error:  # dates such as 2024-13-45
        raise InvalidFlowFile(f"the file holds a value that cannot be read: {error}") from error
    except RecursionError as error:
        raise InvalidFlowFile("the file is nested too deeply") from error


def _refuse_explosion(root: yaml.Node) -> None:
    sizes: dict[int, int] = {}
    _size(root, sizes)
    if sizes[id(root)] > MAX_NODES:
        raise InvalidFlowFile(f"the file's aliases (*name) make it hold more than {MAX_NODES} values: use fewer")


def _size(node: yaml.Node, sizes: dict[int, int]) -> int:
    known = sizes.get(id(node))
    if known == 0:
        raise InvalidFlowFile(f"line {node.start_mark.line + 1}: an alias (*name) that holds itself")
    if known is None:
        sizes[id(node)] = 0  # until it is known: whoever meets it before that is inside of it
        parts: list[yaml.Node] = []
        if isinstance(node, yaml.SequenceNode):
            parts = node.value
        elif isinstance(node, yaml.MappingNode):
            parts = [part for pair in node.value for part in pair]
        known = sizes[id(node)] = 1 + sum(_size(part, sizes) for part in parts)
    return known
