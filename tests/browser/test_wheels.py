"""The view of the wheels."""

from __future__ import annotations

import base64

from playwright.sync_api import FilePayload, expect

from tests.browser.conftest import Visiting
from tests.browser.house import House, wheel
from tests.browser.visit import Visit
from tests.integration.gateway_client import good, until

DROP = """(zone, {name, data}) => {
    const bytes = Uint8Array.from(atob(data), (each) => each.charCodeAt(0));
    const transfer = new DataTransfer();
    transfer.items.add(new File([bytes], name));
    for (const kind of ["dragenter", "dragover", "drop"])
        zone.dispatchEvent(new DragEvent(kind, {dataTransfer: transfer, bubbles: true, cancelable: true}));
}"""


def names(house: House) -> set[str]:
    """What is in the store."""
    return {each["name"] for each in good(house.http.get("/wheels"))}


def choose(window: Visit, name: str, data: bytes) -> None:
    """As by the button that opens the file dialog."""
    file = FilePayload(name=name, mimeType="application/zip", buffer=data)
    window.page.locator("input[type=file]").set_input_files(file)


def test_a_wheel_is_uploaded_and_deleted(house: House, visit: Visiting) -> None:
    """It is in the store, in the list and in the history; deleting it asks first."""
    name, data = wheel("chosen")
    window = visit("/wheels")
    choose(window, name, data)
    window.see(window.t("wheels.done"))
    row = window.row(name)
    assert name in names(house)
    window.click(window.t("wheels.delete_label", name=name))
    dialog = window.page.get_by_role("dialog")
    window.click(window.t("shell.no"), dialog)
    assert name in names(house)
    window.click(window.t("wheels.delete_label", name=name))
    window.click(window.t("wheels.delete"), dialog)
    until(lambda: names(house), lambda found: name not in found)
    expect(row.get_by_role("button", name=window.t("wheels.delete_label", name=name))).to_have_count(0)
    window.see(window.t("wheels.action_delete"))


def test_a_wheel_is_dropped_onto_the_page(house: House, visit: Visiting) -> None:
    """Drag and drop does what the button does."""
    name, data = wheel("dropped")
    window = visit("/wheels")
    zone = window.see(window.t("wheels.drop"))
    zone.evaluate(DROP, {"name": name, "data": base64.b64encode(data).decode()})
    window.row(name)
    until(lambda: names(house), lambda found: name in found)


def test_what_is_no_wheel_and_what_is_not_newer_is_refused_in_words(visit: Visiting) -> None:
    """The second upload of a version says what to do."""
    name, data = wheel("twice")
    window = visit("/wheels", failures=True)
    choose(window, "notes.txt", b"no wheel")
    window.see(window.t("wheels.not_a_wheel"))
    choose(window, name, data)
    window.row(name)
    choose(window, name, data + b"\0")
    window.see(window.t("wheels.conflict"))
