"""``python -m lgsim.cli`` is the command ``lgsim``."""

from lgsim.cli import main

if __name__ == "__main__":
    main()
