"""Settings of the site: `make docs`."""

import os
import shutil
from importlib import metadata
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

SOURCE = Path(os.environ["DOCS_SOURCE"])

project = "lgsim"
author = "The lgsim developers"
copyright = author
release = metadata.version("lgsim")

extensions = ["myst_nb", "sphinx.ext.mathjax"]
root_doc = "index"
html_theme = "furo"
html_title = f"lgsim {release}"
html_static_path = [str(SOURCE / "_static")]
html_show_sourcelink = False
html_copy_source = False
exclude_patterns = ["_build"]
add_module_names = False
python_maximum_signature_line_length = 100
python_use_unqualified_type_names = True
toc_object_entries = False
highlight_language = "python"

myst_enable_extensions = ["dollarmath", "colon_fence"]
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


def _quoted_shapes(app, doctree):
    """Shapes as they are written, by double marks."""
    for node in doctree.findall(addnodes.desc_sig_literal_string):
        text = node.astext()
        if text.startswith("'") and text.endswith("'") and '"' not in text:
            node.children = [nodes.Text(f'"{text[1:-1]}"')]
            node.children[0].parent = node


def setup(app):
    """Tell Sphinx."""
    app.connect("doctree-read", _quoted_shapes)
