"""What every floor leans on: checks of arguments, optional packages, the version, whole files, checkpoints."""
