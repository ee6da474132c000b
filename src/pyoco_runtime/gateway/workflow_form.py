"""The form of POST /runs/yaml, read part by part."""

from __future__ import annotations

from quart import request
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.http import parse_options_header
from werkzeug.sansio.multipart import Data, Epilogue, Field, File, MultipartDecoder, NeedData

from pyoco_runtime.errors import InvalidRequest
from pyoco_runtime.gateway.submissions import WorkflowUpload

FIELD_LIMIT = 4096  # bytes of a field that is no file
OVERHEAD = 16_384  # bytes of a form beside the file
PARTS_LIMIT = 20


async def read_workflow_form(max_bytes: int) -> WorkflowUpload:
    """The form of the request; no more than the limit is ever in memory. Raises InvalidRequest."""
    kind, options = parse_options_header(request.headers.get("content-type"))
    boundary = options.get("boundary")
    if kind != "multipart/form-data" or not boundary:
        raise InvalidRequest("send multipart/form-data with the file `workflow` and the field `flow_name`")
    form = _Form(boundary.encode("latin-1", "replace"), max_bytes)
    async for part in request.body:
        if not form.feed(part):
            return form.upload()
    form.feed(None)
    return form.upload()


class _Form:
    """The fields as they come in."""

    def __init__(self, boundary: bytes, max_bytes: int) -> None:
        self._decoder = MultipartDecoder(boundary, max_bytes + OVERHEAD, max_parts=PARTS_LIMIT)
        self._max_bytes = max_bytes
        self._fields: dict[str, bytearray] = {}
        self._name = ""
        self._has_more = False

    def feed(self, data: bytes | None) -> bool:
        """Take a piece, None at the end; says no when it has seen enough."""
        try:
            self._decoder.receive_data(data)
            while not isinstance(event := self._decoder.next_event(), NeedData | Epilogue):
                if isinstance(event, Field | File):
                    self._name = event.name or ""
                    self._fields[self._name] = bytearray()
                elif isinstance(event, Data):
                    self._take(event.data)
        except RequestEntityTooLarge:
            self._has_more = True
        except ValueError as error:
            raise InvalidRequest(f"the form cannot be read: {error}") from error
        return not self._has_more

    def _take(self, data: bytes) -> None:
        field = self._fields[self._name]
        field += data
        if self._name == "workflow":
            self._has_more = self._has_more or len(field) > self._max_bytes
        elif len(field) > FIELD_LIMIT:
            raise InvalidRequest(f"{self._name}: has more than {FIELD_LIMIT} bytes")

    def upload(self) -> WorkflowUpload:
        """What was sent. Raises InvalidRequest."""
        workflow = self._fields.get("workflow")
        if workflow is None and self._has_more:
            workflow = bytearray()
        found = None if workflow is None else bytes(workflow)
        return WorkflowUpload(found, self._text("flow_name"), self._text("tag"), self._has_more)

    def _text(self, name: str) -> str | None:
        found = self._fields.get(name)
        if found is None:
            return None
        try:
            return found.decode()
        except UnicodeDecodeError as error:
            raise InvalidRequest(f"{name}: is not UTF-8") from error
