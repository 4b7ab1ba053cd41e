"""Text for terminals: lines of styled pieces, tables that fit a width, and how they are printed."""
