"""Tests of all kinds. Accounts of their jobs do not go to the home of whoever runs them."""

import atexit
import os
import shutil
import tempfile


def _have_own_state() -> None:
    folder = tempfile.mkdtemp(prefix="gpushare-state-")
    os.environ["XDG_STATE_HOME"] = folder
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)


if "XDG_STATE_HOME" not in os.environ:  # a process that a test starts has the test's
    _have_own_state()
