"""As in the end-to-end tests: real processes, none of which is left behind."""

from __future__ import annotations

from tests.e2e.conftest import no_process_left, pytest_collection_modifyitems

__all__ = ["no_process_left", "pytest_collection_modifyitems"]  # a fixture, a hook
