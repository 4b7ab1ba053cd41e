"""A real Prometheus that scrapes one exporter, for tests."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.ports import free_ports

PATIENCE_SECONDS = 60.0
_CONFIG = """\
global: {{scrape_interval: 200ms, scrape_timeout: 200ms}}
scrape_configs:
  - job_name: gpushare
    static_configs: [{{targets: ["{target}"]}}]
"""


class Prometheus:
    """Its HTTP interface."""

    def __init__(self, address: str) -> None:
        """`address`: host and port."""
        self._url = f"http://{address}/api/v1/query?"

    def query(self, expression: str, at: float | None = None) -> list[dict[str, Any]]:
        """The series of the answer: `metric`, and `value` or `values`.

        Raises:
            AssertionError: Prometheus cannot evaluate it; with what it says.
        """
        words = {"query": expression} | ({} if at is None else {"time": repr(at)})
        try:
            with urllib.request.urlopen(self._url + urllib.parse.urlencode(words)) as answer:
                said = json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{expression}: {error.read().decode()}") from error
        series: list[dict[str, Any]] = said["data"]["result"]
        return series

    def scraped_after(self, moment: float) -> float:
        """Waits for a scrape that began after this time of the clock; the time of that scrape."""
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            for series in self.query("timestamp(gpushare_up)"):
                if (when := float(series["value"][1])) > moment:
                    return when
            assert time.monotonic() < end, "Prometheus does not scrape"
            time.sleep(0.05)


@contextmanager
def prometheus(target: str, folder: Path) -> Iterator[Prometheus]:
    """Scrapes what listens at that address every 200 ms, and keeps what it reads in the folder."""
    address = f"127.0.0.1:{free_ports(1)[0]}"
    config = folder / "prometheus.yml"
    config.write_text(_CONFIG.format(target=target))
    words = [
        "prometheus",
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
        "--log.level=error",
    ]
    with subprocess.Popen(words, text=True) as process:
        try:
            _wait_ready(process, f"http://{address}/-/ready")
            yield Prometheus(address)
        finally:
            process.kill()


def _wait_ready(process: subprocess.Popen[str], url: str) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            urllib.request.urlopen(url).close()
            return
        except OSError:
            assert process.poll() is None, "Prometheus ended"
            assert time.monotonic() < end, "Prometheus does not get ready"
        time.sleep(0.05)
