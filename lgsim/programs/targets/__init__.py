"""A program as text for a compiler, one target a file."""
