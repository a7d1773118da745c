"""Reading of files: size limits, and errors for files that cannot be read."""
