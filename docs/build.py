"""Build of the site, by `make docs`: gather its source and run Sphinx, for which a warning is an error.

    python docs/build.py folder

Outputs of notebooks and of the gallery's scripts are kept next to the folder. NOTEBOOKS=off shows the stored
outputs. The site also holds `llms.txt`, an index of its pages, and `api.txt`, the public API as plain text.
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
        target: Folder of the site.
    """
    source = target.with_name(f"{target.name}-source")
    modules = sources.public_modules()
    sources.gather(source)
    links = api_pages.Links(f"{sources.REPOSITORY}/blob/main", usages.usages(notebook_runs.notebooks()))
    api_pages.write(modules, source / "api", links)
    extra = source / "_extra"
    extra.mkdir()
    (extra / "api.txt").write_text(api_pages.plain_text(modules), encoding="utf-8")
    (extra / "llms.txt").write_text(sources.llms(source), encoding="utf-8")
    made = target.with_name("replays")
    replays.build(made)
    shutil.copytree(made, source / "_static" / "replays", ignore=shutil.ignore_patterns("*.made"))
    if os.environ.get("NOTEBOOKS") != "off":
        for name, outputs in notebook_runs.build(target.with_name("notebooks")).items():
            sources.copy_notebook(outputs, source / "notebooks" / name)
    settings = Path(__file__).parent
    env = {**os.environ, "DOCS_SOURCE": str(source)}
    trees = target.with_name(f"{target.name}-doctrees")
    sphinx = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", str(trees), "-c", str(settings)]
    return subprocess.run([*sphinx, str(source), str(target)], env=env).returncode


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1]).resolve()))
