"""The command ``gpushare``: one file a subcommand. Nothing here imports torch at start."""
