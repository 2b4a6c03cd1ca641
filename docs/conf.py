"""Configuration of the manual; ``docs/build`` builds it."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS.parent / "src"), str(DOCS / "_ext")]
os.environ.setdefault("OMP_NUM_THREADS", "1")  # examples are small: threads would only wait for each other

import subspaces  # noqa: E402  the package of this checkout, wherever another one is installed

project = "subspaces"
author = "The subspaces developers"
copyright = f"2026, {author}. BSD-3-Clause"
version = release = subspaces.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "paper_maths",
    "listed",
    "commands",
]
exclude_patterns = ["_*", "api/generated/_*", "Makefile"]
templates_path = ["_templates"]
highlight_language = "none"
pygments_style = "a11y-high-contrast-light"
today_fmt = "%d %B %Y"

# ---------------------------------------------------------------- Markdown, formulas
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 4
myst_dmath_allow_labels = True
html_math_renderer = "mathml"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# ---------------------------------------------------------------- reference from docstrings
autosummary_generate = [f"api/{page.name}" for page in sorted((DOCS / "api").glob("*.rst"))]
autosummary_generate += ["api/generated/_listed.rst"]  # names that come from the registry
autodoc_typehints = "none"  # the docstrings say what an argument is, in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the template lists the methods that are ours, not all of scikit-learn's
autodoc_mock_imports = [name for name in ("torch", "dask", "distributed") if importlib.util.find_spec(name) is None]
autosummary_mock_imports = autodoc_mock_imports
default_role = None

# Names that appear in docstrings and have no page here: of other packages, or helpers that nobody calls.
nitpick_ignore = [
    ("py:class", "numpy.random.Generator"),
    ("py:class", "sklearn.exceptions.ConvergenceWarning"),
    ("py:class", "LinearEmbedding"),
    ("py:func", "cluster_image"),
    ("py:func", "nearness"),
    ("py:func", "reusing"),
    ("py:func", "subspaces.representation.sparse.ssc_admm"),
    ("py:meth", "answer"),
    ("py:func", "subspaces.spectral.assign.kmeans"),
    ("py:func", "cells_of"),
    ("py:func", "data_weight"),
    ("py:func", "outlier_weight"),
    ("py:mod", "subspaces.inspection.plots.style"),
]
nitpick_ignore_regex = [("py:obj", r"\w+_")]  # numpydoc links attributes that are properties, by their bare names

# ---------------------------------------------------------------- gallery
warnings.filterwarnings("ignore", message=".*non-interactive.*")
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "abort_on_example_error": True,
    "matplotlib_animations": False,
    "remove_config_comments": True,
    "min_reported_time": 3,
    "write_computation_times": False,
    "thumbnail_size": (400, 300),
    "image_scrapers": ("matplotlib",),
    "reset_modules": ("matplotlib",),
    "capture_repr": ("_repr_html_",),
}

# ---------------------------------------------------------------- pages
html_theme = "pydata_sphinx_theme"
html_title = f"subspaces {version}"
html_static_path = ["_static"]
html_css_files = ["manual.css"]
html_context = {"default_mode": "auto"}  # light or dark as the reader's system
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {name: [] for name in ("index", "start", "commands", "architecture")}
html_theme_options = {
    "logo": {"text": "subspaces"},
    "show_prev_next": True,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 7,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def escape_bars(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Let docstrings write ``|C| + |C|ᵀ``: reStructuredText would look for a substitution of that name."""
    in_example = False
    for i, line in enumerate(lines):
        in_example = line.lstrip().startswith(">>>") or (in_example and bool(line.strip()))
        if not in_example:
            parts = re.split(r"(``.+?``)", line)
            lines[i] = "".join(part if part.startswith("``") else part.replace("|", r"\|") for part in parts)


def setup(app: Any) -> None:
    """Register what this file adds."""
    app.connect("autodoc-process-docstring", escape_bars)
