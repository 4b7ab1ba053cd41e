"""The checks of ``gpushare doctor``: each looks at one thing and says what to do about it."""
