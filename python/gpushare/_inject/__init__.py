"""A folder for PYTHONPATH, not a package to import: ``gpushare run`` puts it there.

This file makes packaging take the folder along.
"""
