"""A campaign of faults on jobs that share a device: `python -m tests.faults --help`."""
