"""One-page reports of fits and studies: HTML that needs neither a network nor a script."""
