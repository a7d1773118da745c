"""Machines whose bodies close loops."""
