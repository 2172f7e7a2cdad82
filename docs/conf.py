"""How `make docs` makes a site of these pages, which read as plain Markdown as well."""

from __future__ import annotations

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.util.inspect import TypeAliasForwardRef
from sphinx.writers.html5 import HTML5Translator

import sparsemean as sm

project = "sparsemean"
author = "The sparsemean developers"
version = release = sm.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
nitpicky = True

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autodoc_typehints_format = "short"
autodoc_type_aliases = {name: name for name in ("Doubles", "Floats", "Ints", "Size", "State", "Tree", "Weighting")}
autodoc_type_aliases["npt.ArrayLike"] = "ArrayLike"
TypeAliasForwardRef.__repr__ = lambda alias: alias.name  # which Sphinx shows where an alias is part of a union
autodoc_member_order = "bysource"
autodoc_mock_imports = ["flwr", "ray", "torch"]  # the site is the same where an engine is not installed

html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"sparsemean {version}"
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["site.css"]


def link_public_names(app: Sphinx, doctree: nodes.document) -> None:
    """Let types in signatures lead to the public name of a class; those of Python, NumPy and ours inside stay text."""
    for reference in list(doctree.findall(pending_xref)):
        if reference.get("refdomain") != "py":
            continue
        name = str(reference["reftarget"]).rpartition(".")[2]
        if name in sm.__all__ and not name.startswith("_"):
            reference["reftarget"] = f"sparsemean.{name}"
        else:
            reference.replace_self(reference.children)


def head_examples(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Give examples that follow a list of parameters the heading without which they would be taken for parameters."""
    example = next((number for number, line in enumerate(lines) if line.startswith(">>>")), None)
    if example and any(line.startswith("---") for line in lines[:example]) and "Examples" not in lines:
        lines[example:example] = ["Examples", "--------"]


def inline_formula(writer: HTML5Translator, node: nodes.math) -> None:
    writer.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def displayed_formula(writer: HTML5Translator, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    # MathML, which browsers draw themselves: no script, and nothing is fetched from elsewhere.
    app.add_html_math_renderer("mathml", (inline_formula, None), (displayed_formula, None))
    app.connect("autodoc-process-docstring", head_examples, priority=400)  # before napoleon reads the sections
    app.connect("doctree-read", link_public_names)
