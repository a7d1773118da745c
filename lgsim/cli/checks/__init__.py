"""What is checked of a motion before it is computed: its start and its size."""
