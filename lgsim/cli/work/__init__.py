"""Implementation of the long commands: check the arguments, compute, write files, print a summary."""
