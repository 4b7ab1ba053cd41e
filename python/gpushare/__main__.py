"""``python -m gpushare`` is the command ``gpushare``."""

from gpushare.cli.main import main

main()
