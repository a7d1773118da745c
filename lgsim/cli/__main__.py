"""Entry point of ``python -m lgsim.cli``, the same as the command ``lgsim``."""

from lgsim.cli import main

if __name__ == "__main__":
    main()
