"""What the commands about accounts share: their options, and the three formats."""
