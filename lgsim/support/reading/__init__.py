"""Files that are read: how large they may be, and how a reader that cannot read one ends."""
