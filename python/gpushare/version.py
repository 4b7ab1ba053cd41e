"""The version, in its only place: packaging, the command line and the daemon take it from here."""

__version__ = "0.1.0.dev0"
