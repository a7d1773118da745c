"""Integration errors of the statistics of a study."""
