"""Common utilities: argument checks, optional packages, the version, files, checkpoints, long computations."""
