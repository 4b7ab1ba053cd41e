"""Building gpushare from a release's sources, and using the wheel where nothing else is."""
