"""One writer of tables: alignment, emphasis, and cells that stay text whatever they hold."""

from __future__ import annotations

from subspaces.metrics.tables import Cell, Table, escape_latex

HOSTILE = "<b>|*_x_ [a](b) $5_6\\input{y}~^\n&"
TABLE = Table(
    ["", "AC", "Δ", "what"],
    [["η_1", Cell("90.1 ± 0.5", bold=True, mark="†"), "+1.5", "3 of 4"], ["b", Cell("–"), "", Cell("i", italic=True)]],
    caption="On x_1",
    notes=["† better.", "Two <runs>."],
)


def test_plain_text():
    assert str(TABLE).splitlines() == [
        "On x_1",
        "               AC     Δ  what",
        "η_1  90.1 ± 0.5*†  +1.5  3 of 4",
        "b               –        i",
        "† better.",
        "Two <runs>.",
    ]


def test_markdown():
    assert TABLE.to_markdown() == (
        "**On x_1**\n\n|  | AC | Δ | what |\n| --- | ---: | ---: | --- |\n"
        "| η_1 | **90.1 ± 0.5**† | +1.5 | 3 of 4 |\n| b | – |  | *i* |\n\n† better.  \nTwo &lt;runs>."
    )


def test_latex():
    assert TABLE.to_latex().splitlines() == [
        r"\begin{table}[htbp]",
        r"\centering",
        r"\caption{On x\_1. $\dagger$ better. Two \textless{}runs\textgreater{}.}",
        r"\begin{tabular}{lrrl}",
        r"\toprule",
        r" & AC & $\Delta$ & what \\",
        r"\midrule",
        r"$\eta$\_1 & \textbf{90.1 $\pm$ 0.5}$\dagger$ & +1.5 & 3 of 4 \\",
        r"b & -- &  & \textit{i} \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    assert Table(["a", "n"], [["1", "2"]]).to_latex().startswith(r"\begin{tabular}{lr}")  # the first column: names
    assert r"\caption{c.}" in Table(["a"], [["b"]], "c").to_latex()


def test_hostile_cells_stay_text():
    table = Table([HOSTILE, "n"], [[HOSTILE, "1"]])
    line = table.to_markdown().splitlines()[-1]
    assert line == r"| &lt;b>\|\*\_x\_ \[a\](b) $5_6\\input{y}~^ &amp; | 1 |"
    tex = table.to_latex().splitlines()[-3]
    assert tex == (
        r"\textless{}b\textgreater{}\textbar{}*\_x\_ [a](b) \$5\_6\textbackslash{}input\{y\}\textasciitilde{}"
        r"\textasciicircum{} \& & 1 \\"
    )
    assert escape_latex("bell\x07") == "bell"
