"""What gpushare does around torch: calls of the model, steps, captures, memory that cannot move."""
