"""How the site is built: ``make docs``, or ``sphinx-build -c docs . site``.

The source folder is the repository, so that a link from one Markdown file to another is the same on a code
host and on the site. Pages are those in docs/ and every Markdown file that they lead to; other files that
they lead to are shown or copied, see ``_ext/repository_files.py``. Tables and pictures of the benchmarks are
made from the stored numbers first (`bench.pages`).
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]
sys.modules["sklearn"] = None  # type: ignore[assignment]  # the estimators without what they inherit from it

import markdown_files  # noqa: E402

import crfit  # noqa: E402
from bench import pages  # noqa: E402
from crfit.pictures import DARK, LIGHT, METHODS, Theme, shade  # noqa: E402

project = "crfit"
version = release = crfit.__version__
html_title = f"crfit {release}"
language = "en"

root_doc = "docs/index"
pages.ensure()  # tables and pictures of the stored results, in docs/made/
include_patterns = markdown_files.connected(HERE.parent, HERE)
exclude_patterns = [".*", "build", "site", "src", "native", "tests"]  # not to be walked through

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "markdown_files",
    "repository_files",
    "docstrings",
    "columns_of_words",
    "pictures",
]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 4  # as on a code host
myst_enable_extensions: list[str] = []
nitpicky = True

# Docstrings tell types in words; signatures are for names and defaults.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
napoleon_google_docstring = False
napoleon_use_param = False
napoleon_use_rtype = False
napoleon_custom_sections = [("Attributes", "params_style")]
default_role = "py:obj"
toc_object_entries_show_parents = "hide"
highlight_language = "text"  # where no language is named: commands, formulas
smartquotes_action = "D"  # dashes; quotes are code more often than speech

pygments_style = "xcode"
pygments_dark_style = "github-dark"
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["crfit.css"]
templates_path = ["_templates"]
html_additional_pages = {"index": "to_home.html"}
html_domain_indices = False
html_show_sourcelink = False
html_copy_source = False
html_show_sphinx = html_show_copyright = False


def _colours(theme: Theme) -> dict[str, str]:
    """Those of the pictures, so that a picture and its page have the same background."""
    brand = METHODS["newton_cg"].colour(theme)
    return {
        "color-brand-primary": brand,
        "color-brand-content": brand,
        "color-background-primary": theme.ground,
        "color-background-secondary": shade(theme.ground, theme.ink, 0.025),
        "color-foreground-primary": theme.ink,
        "color-foreground-secondary": theme.quiet,
        "color-background-border": theme.grid,
    }


html_theme_options = {"light_css_variables": _colours(LIGHT), "dark_css_variables": _colours(DARK)}
