"""What the paper says about its results, sentence by sentence, judged by its own numbers and by ours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reproduction import checks
from reproduction.checks import RIVALS, SCORES, Check, Verdict, all_of, best, gap, higher
from reproduction.facts import MissingResultError, Read, Results, reader

SETS = {"table3": "ExYaleB", "table4": "COIL20", "table5": "USPS", "table6": "MNIST"}
KERNELS = ("(xᵀy)³", "(xᵀy)²", "exp(−d²/σ²)", "exp(−d/σ)", "1/d²", "1/d")
CUBIC, QUADRATIC, GAUSSIAN, EXPONENTIAL = KERNELS[:4]
LARGE = ("SSSC", "SLSR", "SLRR", "KASP", "Nyström", "SEC", "AKK")
DEEP = ("DASC", "DSC-Net-L2", "DSC-Net-L1", "StructAE")
GAUSSIAN_LEVELS, PEPPER_LEVELS = (10, 20, 30, 40, 50), (5, 10, 15, 20, 25)


@dataclass(frozen=True)
class Claim:
    """A statement, where it stands, and how it is judged."""

    where: str
    text: str
    check: Check | None  # None: nothing that we run can judge it
    printed: bool = True  # whether the paper prints the numbers it speaks of


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict by the paper's own numbers and by ours; None where it cannot be judged."""

    claim: Claim
    paper: Verdict | None
    ours: Verdict | None


def judge(results: Results) -> list[Judged]:
    """All claims, as far as there are results."""
    ours, paper, tests = (reader(results, side) for side in ("mean", "paper", "p"))
    return [
        Judged(claim, _verdict(claim, paper) if claim.printed else None, _verdict(claim, ours))
        for claim in claims(tests)
    ]


def _verdict(claim: Claim, read: Read) -> Verdict | None:
    try:
        return None if claim.check is None else claim.check(read)
    except MissingResultError:
        return None


def claims(tests: Read) -> Iterator[Claim]:
    """Every claim in the order of the paper; `tests` reads p-values of our runs."""
    yield from _about_pictures()
    yield from _about_kernels()
    yield from _about_parameters()
    yield from _about_faces_and_objects()
    yield from _about_digits()
    for table, panel in SETS.items():
        test = checks.differs_from_all(tests, table, panel, RIVALS, SCORES)
        number = f"Table {table[-1]}"
        yield Claim(number, "KTRR differs from all other methods at 0.05 in all four scores (†).", test, printed=False)
    yield from _about_noise()
    yield from _about_time(tests)
    yield from _about_depth_and_size(tests)


def _about_pictures() -> Iterator[Claim]:
    curves = higher("fig1", "three curves", "KTRR (Gaussian)", ["TRR (linear)"])
    yield Claim(
        "Fig. 1", "Curves that the linear method mixes are told apart after the mapping.", curves, printed=False
    )

    def inside(read: Read) -> Verdict:
        share = read("fig2", "128 images", "KTRR", "weight inside", None)
        return Verdict(share > 90, f"{share:.1f} % of the weight inside the blocks")

    yield Claim("Fig. 2", "Most similarities lie in the diagonal blocks, few outside.", inside, printed=False)


def _about_kernels() -> Iterator[Claim]:
    sets = ("ExYaleB", "COIL20", "USPS", "MNIST")
    rest = [kernel for kernel in KERNELS if kernel != GAUSSIAN]
    wins = all_of(*(best("table2", panel, GAUSSIAN, rest, ["AC"]) for panel in ("ExYaleB", "USPS")))
    yield Claim("Table 2", "The Gaussian kernel is the best on ExYaleB and USPS.", wins)
    poor = all_of(*(higher("table2", "ExYaleB", kernel, [CUBIC, QUADRATIC]) for kernel in KERNELS[2:]))
    yield Claim("Table 2", "The polynomial kernels are poor on ExYaleB.", poor)
    order = all_of(higher("table2", "COIL20", QUADRATIC, [CUBIC]), higher("table2", "USPS", CUBIC, [QUADRATIC]))
    yield Claim("Table 2", "Quadratic beats cubic on COIL20, cubic beats quadratic on USPS.", order)
    other = all_of(
        higher("table2", "COIL20", EXPONENTIAL, [GAUSSIAN]), higher("table2", "USPS", GAUSSIAN, [EXPONENTIAL])
    )
    yield Claim("Table 2", "exp(−d/σ) beats the Gaussian on COIL20, and the other way round on USPS.", other)

    def spread(read: Read) -> Verdict:
        values = {panel: [read("table2", panel, kernel, "AC", None) for kernel in KERNELS] for panel in sets}
        ranges = {panel: max(found) - min(found) for panel, found in values.items()}
        told = ", ".join(f"{panel} {width:.1f}" for panel, width in ranges.items())
        return Verdict(all(width > 5 for width in ranges.values()), f"points between best and worst: {told}")

    yield Claim("Table 2", "The kernel makes a significant difference on all four sets (here: over 5 points).", spread)


def _about_parameters() -> Iterator[Claim]:
    faces, objects = (0.1, 0.5, 1.0, 5.0, 10.0), (0.01, 0.1, 1.0, 10.0, 100.0)
    sizes, inside, outside = (3, 4, 5, 6, 7), tuple(range(3, 11)), (1, 2, 20, 30, 40, 50)
    yield Claim("Fig. 3", "Best on ExYaleB at λ = 0.1, η = 5.", checks.peak("fig3", sizes, faces, 5, 0.1))
    yield Claim("Fig. 4", "Best on COIL20 at λ = 10, η = 4.", checks.peak("fig4", sizes, objects, 4, 10.0))
    bounds = {"AC": 85, "NMI": 90, "ARI": 75, "F": 75}
    plateau = checks.at_least("fig3", "(b)", "KTRR", (0.1, 0.2, 0.5, 0.7, 0.8, 1.0), bounds)
    yield Claim("Fig. 3", "ExYaleB, λ from 0.1 to 1: above 85 / 90 / 75 / 75.", plateau)
    bounds = {"AC": 80, "NMI": 90, "ARI": 80, "F": 80}
    plateau = checks.at_least("fig4", "(b)", "KTRR", (0.2, 0.5, 0.7, 0.8, 1.0, 10.0, 100.0), bounds)
    yield Claim("Fig. 4", "COIL20, λ from 0.2 to 100: above 80 / 90 / 80 / 80.", plateau)
    for name, number, data in (("fig3", "Fig. 3", "ExYaleB"), ("fig4", "Fig. 4", "COIL20")):
        band = checks.inside_beats_outside(name, inside, outside)
        yield Claim(number, f"{data}: η from 3 to 10 is much better than other values.", band)

    def falls(read: Read) -> Verdict:
        found = [read("fig5", "COIL100", "KTRR", "AC", t) for t in (10, 50, 100)]
        told = f"AC {found[0]:.1f}, {found[1]:.1f}, {found[2]:.1f} at 10, 50, 100 objects"
        return Verdict(found[0] > found[1] > found[2], told)

    yield Claim("Fig. 5", "Performance falls with the number of objects.", falls)
    few = checks.about("fig5", "COIL100", "KTRR", 10, {"AC": 100, "NMI": 100}, 0.3)
    yield Claim("Fig. 5", "Perfect at 10 objects.", few)
    many = checks.about("fig5", "COIL100", "KTRR", 100, {"AC": 74, "NMI": 90, "ARI": 68, "F": 68}, 2.0)
    yield Claim("Fig. 5", "Around 74 / 90 / 68 / 68 at 100 objects.", many)
    steady = checks.at_least("fig5", "COIL100", "KTRR", range(10, 101, 10), {"NMI": 89.5})
    yield Claim("Fig. 5", "NMI stays between 100 and 90.", steady)


def _about_faces_and_objects() -> Iterator[Claim]:
    faces, objects = ("table3", "ExYaleB"), ("table4", "COIL20")
    yield Claim("Table 3", "KTRR is the best in all four scores.", best(*faces, "KTRR", RIVALS))
    for other, said in (("TRR", (17, 17, 26, 24)), ("KLRR", (32, 28, 41, 40))):
        gaps = [gap(*faces, "KTRR", other, by, metric=m) for m, by in zip(SCORES, said, strict=True)]
        yield Claim("Table 3", f"KTRR is {' / '.join(map(str, said))} points above {other}.", all_of(*gaps))
    truncated = higher(*faces, "TRR", ["LSR1", "LSR2"], by=5)
    yield Claim("Table 3", "TRR beats LSR1 and LSR2 with a considerable gap (here: over 5 points).", truncated)
    everyone = all_of(*(higher(*faces, row, ["SC"]) for row in ("KTRR", "TRR", "KLRR", "KSSC", "LRR1", "LRR2", "SSC")))
    yield Claim("Table 3", "All methods of representation beat spectral clustering.", everyone)
    kernels = "Linear methods (TRR, LRR, SSC) are below their kernel extensions."
    yield Claim("Table 3", kernels, checks.kernels_win(*faces))
    yield Claim("Table 4", "KTRR is the best in all four scores.", best(*objects, "KTRR", RIVALS))
    yield Claim("Table 4", "KTRR is 6.13 points above TRR, the second best.", _second(*objects, "TRR", 6.13))
    yield Claim("Table 4", "KTRR is 10.96 points above KSSC.", gap(*objects, "KTRR", "KSSC", 10.96))
    yield Claim("Table 4", kernels, checks.kernels_win(*objects))
    low_rank = higher(*objects, "SC", ["KLRR", "LatLRR", "LRR1", "LRR2"])
    yield Claim("Table 4", "KLRR, LatLRR, LRR1 and LRR2 are below spectral clustering.", low_rank)


def _second(table: str, panel: str, row: str, said: float) -> Check:
    rest = [rival for rival in RIVALS if rival != row]
    return all_of(best(table, panel, row, rest, ["AC"]), gap(table, panel, "KTRR", row, said))


def _about_digits() -> Iterator[Claim]:
    usps, mnist = ("table5", "USPS"), ("table6", "MNIST")
    kernels = "Linear methods (TRR, LRR, SSC) are below their kernel extensions."
    yield Claim("Table 5", "KTRR is the best in all four scores.", best(*usps, "KTRR", RIVALS))
    for other, said in (("TRR", 21), ("KLRR", 10), ("KSSC", 6)):
        yield Claim("Table 5", f"KTRR is {said} points above {other}.", gap(*usps, "KTRR", other, said))
    yield Claim("Table 5", kernels, checks.kernels_win(*usps))
    yield Claim("Table 5", "KSSC is 44 points above SSC.", gap(*usps, "KSSC", "SSC", 44))
    below = all_of(*(higher(*usps, row, ["SSC"]) for row in ("LRR1", "LRR2")))
    yield Claim("Table 5", "SSC is below LRR.", below)
    yield Claim("Table 6", "KTRR is the best in all four scores.", best(*mnist, "KTRR", RIVALS))
    yield Claim("Table 6", "KTRR is 31.78 points above TRR.", gap(*mnist, "KTRR", "TRR", 31.78))
    yield Claim("Table 6", kernels, checks.kernels_win(*mnist))
    four = ("KTRR", "KLRR", "SMCE", "LSA")
    rest = [row for row in RIVALS if row not in four]
    led = all_of(*(higher(*mnist, row, rest) for row in four))
    yield Claim("Table 6", "KTRR, KLRR, SMCE and LSA are the best four.", led)


def _about_noise() -> Iterator[Claim]:
    panels = ("ExYaleB", "COIL20")
    for panel in panels:
        test = checks.leads("fig7", panel, "KTRR", GAUSSIAN_LEVELS)
        yield Claim("Fig. 7", f"KTRR is more robust than the others under Gaussian noise ({panel}).", test)
    near = checks.about("fig7", "COIL20", "KTRR", 10, {"AC": 80}, 3.0)
    yield Claim("Fig. 7", "About 80 on COIL20 at 10 dB.", near)
    fall = all_of(*(checks.drops("fig7", panel, ("LRR1", "LRR2", "LatLRR"), 50, 10, 10) for panel in panels))
    yield Claim("Fig. 7", "LRR1, LRR2 and LatLRR deteriorate sharply (here: over 10 points from 50 to 10 dB).", fall)
    easier = checks.better_on("fig7", "COIL20", "ExYaleB", GAUSSIAN_LEVELS)
    yield Claim("Fig. 7", "All methods are better on COIL20 than on ExYaleB.", easier)
    first = checks.leads("fig8", "COIL20", "KTRR", (5, 10, 15))
    yield Claim("Fig. 8", "KTRR is the best on COIL20 from 5 to 15 % salt and pepper.", first)
    near = checks.about("fig8", "COIL20", "KTRR", 25, {"AC": 60}, 5.0)
    yield Claim("Fig. 8", "About 60 on COIL20 at 25 %.", near)
    behind = checks.leads("fig8", "ExYaleB", "SSC", (20, 25), ("KTRR",))
    yield Claim("Fig. 8", "On ExYaleB KTRR is below SSC at 20 and 25 %.", behind)
    worse = all_of(*(checks.compared_levels(("fig7", 50), ("fig8", 5), panel) for panel in panels))
    yield Claim("Fig. 8", "All methods are worse than under Gaussian noise (5 % against 50 dB).", worse)
    easier = checks.better_on("fig8", "COIL20", "ExYaleB", PEPPER_LEVELS)
    yield Claim("Fig. 8", "All methods are better on COIL20 than on ExYaleB.", easier)
    low = checks.below("fig8", "ExYaleB", ("KTRR", *RIVALS), (20, 25), 40)
    yield Claim("Fig. 8", "All methods are below 40 on ExYaleB at 20 and 25 %.", low)

    def useless(read: Read) -> Verdict:
        faces, objects = (read("fig6", f"(b) {panel}", "first image", "changed (%)", 25) for panel in panels)
        return Verdict(objects < faces, f"changed at 25 %: COIL20 {objects:.1f} %, ExYaleB {faces:.1f} %")

    text = "On COIL20 more of the corruption is useless, its pixels being near black or white."
    yield Claim("Fig. 6", text, useless, printed=False)


def _about_time(tests: Read) -> Iterator[Claim]:
    sets = tuple(SETS.values())

    def slower(metric: str, row: str, others: tuple[str, ...]) -> Check:
        return all_of(*(higher("table7", panel, other, [row], metric) for panel in sets for other in others))

    rest = ("KSSC", "SSC", "KLRR", "LRR1", "LRR2")
    both = all_of(*(slower("t2", row, rest) for row in ("KTRR", "TRR")))
    yield Claim("Table 7", "KTRR and TRR are faster than KSSC, SSC, KLRR and LRR.", both)
    fastest = all_of(
        *(slower(metric, "SC", tuple(r for r in ("KTRR", *RIVALS) if r != "SC")) for metric in ("t1", "t2"))
    )
    yield Claim("Table 7", "Spectral clustering is the fastest.", fastest)
    cheap = all_of(*(slower("t1", row, ("KTRR",)) for row in ("LSR1", "LSR2")))
    yield Claim("Table 7", "LSR1 and LSR2 build their graphs at low cost (less than KTRR's).", cheap)
    others = ["KTRR", *(row for row in RIVALS if row != "KSSC")]
    last = all_of(*(higher("table7", panel, "KSSC", others, "t2") for panel in sets))
    yield Claim("Table 7", "KSSC takes the longest.", last)
    faster = [higher("table7", panel, "KTRR", ["TRR"], "t2") for panel in ("ExYaleB", "USPS")]
    order = all_of(*faster, higher("table7", "MNIST", "TRR", ["KTRR"], "t2"))
    yield Claim("Table 7", "TRR is faster than KTRR on ExYaleB and USPS, slower on MNIST.", order)

    def alike(read: Read) -> Verdict:
        found = {(s, m): tests("table7", s, "TRR", m, None) for s in sets for m in ("t1", "t2")}
        told = ", ".join(f"{panel} {metric} {p:.2g}" for (panel, metric), p in found.items())
        return Verdict(all(p >= 0.05 for p in found.values()), f"p: {told}")

    yield Claim("Table 7", "No significant difference between the times of KTRR and TRR.", alike, printed=False)


def _about_depth_and_size(tests: Read) -> Iterator[Claim]:
    deep, large = ("fig9", "COIL20"), ("table8", "Covtype")
    autoencoder = all_of(*(higher(*deep, "KTRR", ["AE+SSC"], metric) for metric in ("AC", "NMI")))
    yield Claim("Fig. 9", "KTRR beats AE+SSC in AC and NMI.", autoencoder)
    behind = all_of(*(higher(*deep, row, ["KTRR"]) for row in DEEP))
    yield Claim("Fig. 9", "KTRR is below DASC, DSC-Net and StructAE in AC.", behind)
    near = all_of(*(gap(*deep, "KTRR", row, 0, metric="NMI", within=3) for row in DEEP))
    yield Claim("Fig. 9", "Its NMI is competitive with theirs (here: within 3 points).", near)
    yield Claim("Fig. 9", "Networks need large amounts of data; KTRR does not.", None)
    yield Claim("Table 8", "EKTRR has the highest accuracy.", best(*large, "EKTRR", LARGE, ["AC"]))
    second = all_of(
        best(*large, "SSSC", [row for row in LARGE if row != "SSSC"], ["AC"]), gap(*large, "EKTRR", "SSSC", 11.01)
    )
    yield Claim("Table 8", "It is 11.01 points above SSSC, the second best.", second)
    yield Claim("Table 8", "It is 15.34 points above Nyström.", gap(*large, "EKTRR", "Nyström", 15.34))
    rest = ["EKTRR", *(row for row in LARGE if row != "SLSR")]
    yield Claim("Table 8", "SLSR has the highest NMI.", best(*large, "SLSR", rest, ["NMI"]))

    def small(read: Read) -> Verdict:
        top = max(read(*large, row, "NMI", None) for row in ("EKTRR", *LARGE))
        return Verdict(top < 10, f"highest {top:.1f}")

    yield Claim("Table 8", "The NMI of all is very small (here: below 10).", small)

    def fast(read: Read) -> Verdict:
        own = read(*large, "EKTRR", "seconds", None)
        rival = min(LARGE, key=lambda row: read(*large, row, "seconds", None))
        ratio = read(*large, rival, "seconds", None) / own
        return Verdict(ratio >= 2, f"{rival}, the next, takes {ratio:.2g} times as long")

    yield Claim("Table 8", "It is at least two times faster than the others.", fast)
    test = checks.differs_from_all(tests, *large, LARGE, ("AC", "NMI", "seconds"))
    yield Claim("Table 8", "EKTRR differs from all other methods at 0.05 (†).", test, printed=False)
