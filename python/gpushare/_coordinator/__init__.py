"""How a process finds its coordinator, registers there, and asks it questions."""
