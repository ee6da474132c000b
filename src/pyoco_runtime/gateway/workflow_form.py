"""The form of POST /runs/yaml."""

from __future__ import annotations

from quart import request
from werkzeug.sansio.multipart import Data, Field, File

from pyoco_runtime.errors import InvalidRequest
from pyoco_runtime.gateway.body_time import body_in_time
from pyoco_runtime.gateway.multipart_reader import MultipartReader
from pyoco_runtime.gateway.submissions import WorkflowUpload

FIELD_BYTES = 4096  # of a field that is no file


async def read_workflow_form(max_bytes: int) -> WorkflowUpload:
    """The form of the request; little more than the limit is ever in memory. Raises InvalidRequest."""
    kind = request.headers.get("content-type")
    wanted = "the file `workflow` and the field `flow_name`"
    form = _WorkflowForm(max_bytes)
    async with body_in_time():
        await form.read(MultipartReader(kind, aiter(request.body), wanted=wanted))
    return form.upload()


class _WorkflowForm:
    """The fields as they come in, until the file is too long."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._fields: dict[str, bytearray] = {}
        self._has_more = False

    async def read(self, reader: MultipartReader) -> None:
        """Take it in. Raises InvalidRequest."""
        name = ""
        while not self._has_more and (event := await reader.next()) is not None:
            match event:
                case Field() | File():
                    name = event.name or ""
                    self._fields[name] = bytearray()
                case Data():
                    self._add(name, event.data)

    def upload(self) -> WorkflowUpload:
        """What was sent. Raises InvalidRequest."""
        workflow = self._fields.get("workflow")
        found = None if workflow is None else bytes(workflow)
        return WorkflowUpload(found, self._text("flow_name"), self._text("tag"), self._has_more)

    def _add(self, name: str, data: bytes) -> None:
        field = self._fields[name]
        field += data
        if name == "workflow":
            self._has_more = len(field) > self._max_bytes
        elif len(field) > FIELD_BYTES:
            raise InvalidRequest(f"{name}: has more than {FIELD_BYTES} bytes")

    def _text(self, name: str) -> str | None:
        found = self._fields.get(name)
        if found is None:
            return None
        try:
            return found.decode()
        except UnicodeDecodeError as error:
            raise InvalidRequest(f"{name}: is not UTF-8") from error
