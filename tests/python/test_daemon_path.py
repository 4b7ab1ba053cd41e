"""Where gpushared is found."""

from __future__ import annotations

import stat

from gpushare._settings import config as config_module
from gpushare._settings.config import daemon_path


def test_the_daemon_is_the_packages_else_the_one_on_path(tmp_path, monkeypatch):
    monkeypatch.setattr(config_module, "__file__", str(tmp_path / "_settings" / "config.py"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert daemon_path() == ""
    for folder in ("path", "bin"):
        (tmp_path / folder).mkdir()
        program = tmp_path / folder / "gpushared"
        program.touch()
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        assert daemon_path() == str(program)
