"""Formulas as MathML, numbered as in the paper.

Browsers draw MathML themselves, so a page shows its formulas without a script and without the network. An equation
labelled ``3.9`` is printed and referred to as (3.9): the numbers are those of the paper, not counted anew.
"""

from __future__ import annotations

from typing import Any, ClassVar

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.domains.math import MathDomain
from sphinx.writers.html5 import HTML5Translator


class PaperMathDomain(MathDomain):
    """Equations whose label is their number."""

    data_version: ClassVar[int] = 1

    def note_equation(self, docname: str, labelid: str, location: Any = None) -> None:
        """Keep the label where Sphinx would count."""
        super().note_equation(docname, labelid, location)
        self.equations[labelid] = (docname, labelid)  # type: ignore[assignment]


def visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    """Draw a formula within a line."""
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def visit_block(self: HTML5Translator, node: nodes.math_block) -> None:
    """Draw a formula on a line of its own, its number at the right."""
    self.body.append(self.starttag(node, "div", CLASS="math equation"))
    self.body.append(convert(node.astext(), display="block"))
    if node.get("number"):
        self.body.append(f'<span class="eqno">({node["number"]})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_domain(PaperMathDomain, override=True)
    app.add_html_math_renderer("mathml", inline_renderers=(visit_inline, None), block_renderers=(visit_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
