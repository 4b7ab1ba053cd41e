"""What may be set: names, values and units, files, environment and arguments."""
