"""The site, by `make docs`: its source is gathered, Sphinx builds it, and a warning fails.

    python docs/build.py folder

What notebooks and the gallery's scripts gave is kept beside it. NOTEBOOKS=off shows the stored outputs.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import api_pages
import notebook_runs
import replays
import sources
import usages


def build(target: Path) -> int:
    """Build the site; the exit status of Sphinx.

    Args:
        target: Where to.
    """
    source = target.with_name(f"{target.name}-source")
    sources.gather(source)
    links = api_pages.Links(f"{sources.REPOSITORY}/blob/main", usages.usages(notebook_runs.notebooks()))
    api_pages.write(sources.public_modules(), source / "api", links)
    made = target.with_name("replays")
    replays.build(made)
    shutil.copytree(made, source / "_static" / "replays", ignore=shutil.ignore_patterns("*.made"))
    if os.environ.get("NOTEBOOKS") != "off":
        for name, outputs in notebook_runs.build(target.with_name("notebooks")).items():
            shutil.copyfile(outputs, source / "notebooks" / name)
    settings = Path(__file__).parent
    env = {**os.environ, "DOCS_SOURCE": str(source)}
    trees = target.with_name(f"{target.name}-doctrees")
    sphinx = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", str(trees), "-c", str(settings)]
    return subprocess.run([*sphinx, str(source), str(target)], env=env).returncode


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1]).resolve()))
