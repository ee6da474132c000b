"""GET / and /static/*: what is served, as what, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyoco_runtime.gateway.static_files import HOME, TYPES, StaticFiles
from tests.unit.gateway.support import Office, on_asyncio

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@pytest.mark.parametrize("auth", [False, True])
@on_asyncio
async def test_the_page_needs_no_key_and_no_nats(auth: bool) -> None:
    """Whoever has no key yet is asked for it by the page."""
    office = Office(auth=auth, connected=False)
    for path, kind in [
        ("/", "text/html; charset=utf-8"),
        ("/static/vendor/htm-preact-3.1.1.js", "text/javascript; charset=utf-8"),
        ("/static/vendor/htm.LICENSE", "text/plain; charset=utf-8"),
        ("/static/config.json", "application/json"),
        ("/static/messages/ja.json", "application/json"),
    ]:
        answer = await office.client.get(path)
        assert (answer.status, answer.headers["content-type"]) == (200, kind)
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-cache"


@on_asyncio
async def test_what_a_browser_has_is_not_sent_again() -> None:
    """It asks each time, so that an upgrade is seen at once."""
    client = Office().client
    for path in ("/", "/static/config.json", "/static/messages/en.json"):
        first = await client.get(path)
        again = await client.with_headers(If_None_Match=first.headers["etag"]).get(path)
        assert (again.status, again.data, again.headers["etag"]) == (304, b"", first.headers["etag"])
        assert (await client.with_headers(If_None_Match='"another"').get(path)).status == 200
        head = await client.ask("HEAD", path)
        assert (head.status, head.headers["etag"]) == (200, first.headers["etag"])


@pytest.mark.parametrize("auth", [False, True])
@on_asyncio
async def test_the_page_learns_its_settings(auth: bool) -> None:
    """And nothing that is a secret."""
    assert (await Office(auth=auth).client.get("/static/config.json")).json == {
        "lang": "auto",
        "auth": "api_key" if auth else "none",
        "api_key_header": "X-API-Key",
        "version": "",
        "stale_after_sec": 30.0,
    }


@on_asyncio
async def test_the_texts_are_those_of_the_catalogue() -> None:
    """Of errors and of the page, by their keys."""
    client = Office().client
    for lang, word in (("en", "running"), ("ja", "実行中")):
        texts = (await client.get(f"/static/messages/{lang}.json")).json
        assert texts["ui.shared.status.RUNNING"] == word
        assert texts["MSG-PYOCO-0005"]
    assert (await client.get("/static/messages/fr.json")).status == 404


@pytest.mark.parametrize(
    "path",
    [
        "/static/",
        "/static/vendor",
        "/static/nothing.js",
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static/vendor/..%5c..%5capp.py",
        "/static/%2fetc/passwd",
        "/static/.hidden.js",
        "/static/vendor/htm.LICENSE%00.js",
        "/static/css/",
    ],
)
@on_asyncio
async def test_nothing_else_is_served(path: str) -> None:
    """No way leads out of the folder, and a folder is no file."""
    answer = await Office().client.get(path)
    assert answer.status in (308, 404)
    assert b"import" not in answer.data
    assert b"root:" not in answer.data


def test_links_do_not_lead_out_and_unknown_kinds_are_not_there(tmp_path: Path) -> None:
    """Whatever lies in the folder."""
    (tmp_path / "secret.js").write_text("secret")
    home = tmp_path / "home"
    home.mkdir()
    (home / "out.js").symlink_to(tmp_path / "secret.js")
    (home / "script.py").write_text("print()")
    (home / "in.js").write_text("1")
    files = StaticFiles(home)
    assert files.find("out.js") is None
    assert files.find("script.py") is None
    assert files.find("in.js") is not None


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    """Whoever works on the page needs no restart."""
    (tmp_path / "a.js").write_text("1")
    files = StaticFiles(tmp_path)
    first = files.find("a.js")
    assert first is files.find("a.js")
    (tmp_path / "a.js").write_text("22")
    second = files.find("a.js")
    assert first is not None
    assert second is not None
    assert (second.body, second.etag == first.etag) == (b"22", False)


def test_every_file_of_the_package_can_be_served() -> None:
    """One of a kind that we do not know would be missing for users alone."""
    there = [path for path in HOME.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert there
    for path in there:
        assert path.suffix in TYPES, path
        assert StaticFiles().find(path.relative_to(HOME).as_posix()) is not None, path
