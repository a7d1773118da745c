"""Checks before a command computes or writes: initial state, run size and existing files."""
