"""On which allocator a job of the demo runs, and whether it takes turns."""

STOCK = "stock"
"""torch's own allocator, no gpushare."""
ALLOCATOR = "allocator"
"""gpushare's allocator in a process that no coordinator manages."""
SHARED = "shared"
"""gpushare's allocator, and turns."""
MODES = (STOCK, ALLOCATOR, SHARED)
