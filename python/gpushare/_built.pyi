"""What the compiled module was built for; the build writes the module itself."""

TORCH: str
"""The "major.minor" of torch."""
