"""Recorded motion: read, checked, mended and smoothed."""
