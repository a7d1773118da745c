"""The solids of files of machines, read once for distances, contacts and pictures."""
