"""What the long commands do, from the check of their words to the files that they leave."""
