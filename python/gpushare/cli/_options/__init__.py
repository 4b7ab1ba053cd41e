"""Options of commands that are settings, and the environment that they become."""
