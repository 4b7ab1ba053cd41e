"""Accounts of finished jobs: read from the journals of coordinators, put together in SQLite."""
