"""Which coordinators and which jobs a command is about."""
