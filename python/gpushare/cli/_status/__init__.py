"""What `gpushare status` shows, without typer: the command starts quickly."""
