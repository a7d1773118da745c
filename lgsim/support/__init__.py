"""Common utilities: argument checks, files, checkpoints, optional packages."""
