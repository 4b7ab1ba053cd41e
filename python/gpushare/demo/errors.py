"""What can go wrong in the demo itself, as against in what it shows."""

from gpushare.errors import GpushareError


class DemoError(GpushareError):
    """A job or the coordinator of the demo did not do its part."""
