"""Runs of a program with and without gpushare, and their comparison."""
