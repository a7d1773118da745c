"""What a plan chooses beside its controls, and motions of several phases."""
