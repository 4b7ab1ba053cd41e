"""The tests start real processes, as the end-to-end tests do, and leave none of them behind."""

from __future__ import annotations

from tests.e2e.conftest import no_process_left, pytest_collection_modifyitems

__all__ = ["no_process_left", "pytest_collection_modifyitems"]  # a fixture, a hook
