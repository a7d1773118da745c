"""What every floor leans on: argument checks, optional packages, the version, whole files, checkpoints, long work."""
