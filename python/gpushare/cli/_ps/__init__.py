"""The columns and the forms of `gpushare ps`."""
