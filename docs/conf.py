"""Settings of the site: `make docs`."""

import os
import shutil
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

SOURCE = Path(os.environ["DOCS_SOURCE"])
ROOT = Path(__file__).parents[1]
REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Source"]
DESCRIPTION = 160
"""Letters of a page's description."""


def _commit() -> str:
    """The commit of the pages; empty outside of a repository."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f", commit {done.stdout.strip()}"


project = "lgsim"
author = "The lgsim developers"
release = metadata.version("lgsim")
copyright = f"{author}. Version {release}{_commit()}"

extensions = ["myst_nb", "sphinx.ext.mathjax"]
root_doc = "index"
html_theme = "furo"
html_title = f"lgsim {release}"
STYLES = sorted((ROOT / "docs").glob("*.css"))
html_static_path = [str(SOURCE / "_static"), str(ROOT / "docs" / "static"), *map(str, STYLES)]
html_extra_path = [str(SOURCE / "_extra")]
html_css_files = ["site.css", *(each.name for each in STYLES)]
html_js_files = ["site.js"]
html_favicon = str(ROOT / "docs" / "static" / "favicon.svg")
html_theme_options = {
    "source_repository": REPOSITORY,
    "source_branch": "main",
    "source_directory": "",
    "top_of_page_buttons": ["edit"],
}
html_show_sourcelink = False
html_copy_source = False
exclude_patterns = ["_build", "_extra"]
add_module_names = False
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True
toc_object_entries = False
highlight_language = "python"

myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # notebook_runs has run them

# from the site's own files
mathjax_path = "mathjax/tex-chtml.js"


def _mathjax(target: Path) -> None:
    """MathJax and its fonts, of the package sphinx-mathjax-offline; without them formulas would be blank."""
    for file in metadata.files("sphinx-mathjax-offline") or ():
        parts = file.parts
        if "mathjax" in parts and (file.name == "tex-chtml.js" or "woff-v2" in parts):
            place = target / Path(*parts[parts.index("mathjax") :])
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(str(file.locate()), place)
    if not (target / mathjax_path).exists():
        raise FileNotFoundError(f"the package sphinx-mathjax-offline has no {mathjax_path}: pip install 'lgsim[docs]'")


_mathjax(SOURCE / "_static")
(SOURCE / "_extra").mkdir(exist_ok=True)


def _quoted_shapes(app, doctree):
    """Shapes as they are written, by double marks."""
    for node in doctree.findall(addnodes.desc_sig_literal_string):
        text = node.astext()
        if text.startswith("'") and text.endswith("'") and '"' not in text:
            node.children = [nodes.Text(f'"{text[1:-1]}"')]
            node.children[0].parent = node


def _page_context(app, pagename, templatename, context, doctree):
    """The description of a page, from its first paragraph, and its edit link; a page that the build makes has none."""
    if doctree is not None:
        first = next((node for node in doctree.findall(nodes.paragraph) if len(node.astext()) > 20), None)
        text = " ".join(first.astext().split()) if first else f"{context.get('title', '')}: {project} {release}"
        if len(text) > DESCRIPTION:
            text = f"{text[: DESCRIPTION - 4].rpartition(' ')[0]} ..."
        text = text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
        context["metatags"] = context.get("metatags", "") + f'\n<meta name="description" content="{text}">'
    suffix = context.get("page_source_suffix") or ""
    if pagename == root_doc:
        context["theme_source_edit_link"] = f"{REPOSITORY}/edit/main/docs/index.md"
    elif not (ROOT / f"{pagename}{suffix}").is_file():
        context["page_source_suffix"] = ""


def setup(app):
    """Register the handlers."""
    app.connect("doctree-read", _quoted_shapes)
    app.connect("html-page-context", _page_context)
