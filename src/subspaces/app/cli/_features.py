"""``--features``: what makes vectors of images, checked before a file is read; a network by default, if it is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import typer

from subspaces.app.cli._common import Refusal

if TYPE_CHECKING:
    from subspaces.app.features import Extractor
    from subspaces.app.files import Dataset
    from subspaces.app.files.models import Reading
    from subspaces.selection.auto import Chosen

OPTION, PIXELS, USUAL = "--features", "pixels", "efficientnet"
_OF_PIXELS = ("image_size", "color")
_CLEARER = 0.02  # nearly equal agreement says nothing: then the network, which knows photographs


@dataclass(frozen=True)
class Features:
    """What was asked for: nothing, pixels, or an extractor."""

    spec: str | None = None
    extractor: Extractor | None = None

    @classmethod
    def checked(cls, spec: str | None, given: dict[str, Any]) -> Self:
        """Refuse what is no extractor, what is not installed and, in `given`, options that have no meaning with it.

        Who gives the size or the colours of pixels wants to compare pixels.
        """
        of_pixels = [name for name in _OF_PIXELS if given.get(name)]
        if spec is None or spec == PIXELS:
            return cls(PIXELS if of_pixels else spec)
        for name in ("image", "motion", "scheduler"):
            if given.get(name):
                raise typer.BadParameter(f"has no meaning with --{name}", param_hint=OPTION)
        if of_pixels:
            hint = "--" + of_pixels[0].replace("_", "-")
            raise typer.BadParameter("is for --features pixels; others read the files as they need", param_hint=hint)
        from subspaces.app.features import as_extractor

        try:
            extractor = as_extractor(spec)
            extractor.check()
        except (ValueError, ImportError) as error:
            raise typer.BadParameter(str(error), param_hint=OPTION) from error
        return cls(spec, extractor)

    def of(self, data: Dataset) -> Dataset:
        """The points as they are clustered: images become vectors where that was asked for or is usual."""
        from subspaces.app.features.networks import EfficientNet, is_installed

        if data.texts is not None:
            return self._of_texts(data)
        if data.image_shape is None:
            if self.spec is not None:
                raise typer.BadParameter(f"is for images and texts, and {data.source} holds none", param_hint=OPTION)
            return data
        if self.spec == PIXELS or (self.spec is None and not data.is_image_folder):
            return data
        if self.spec is None and not is_installed():
            return replace(data, notes=(*data.notes, ALIGNED))
        return self._made(data, self.extractor or EfficientNet())

    def _of_texts(self, data: Dataset) -> Dataset:
        """Texts as vectors: by what was asked for, or by what suits them."""
        from subspaces.app.features import featured
        from subspaces.app.features.documents import INSTALL, is_installed, usual

        if self.spec == PIXELS:
            raise typer.BadParameter(f"texts have no pixels ({data.source})", param_hint=OPTION)
        extractor = self.extractor or usual(data.texts or [])
        with _refused():
            made = featured(data, extractor)
        what = f"each of {made.n_samples} texts became {made.X.shape[1]} {extractor.kind} ({extractor.name})"
        other = "sentences" if extractor.name == "tfidf" else "tfidf"
        how = f"{OPTION} {other} is another way" if is_installed() else f"{INSTALL} brings word vectors for short ones"
        return replace(made, notes=(f"{what}; {how}", *data.notes))

    def _made(self, data: Dataset, extractor: Extractor) -> Dataset:
        from subspaces.app.features import featured

        with _refused():
            made = featured(data, extractor)
        what = f"each of {len(made.X)} images became {made.X.shape[1]} {extractor.kind} ({extractor.title})"
        return replace(made, notes=(f"{what}; {OPTION} {PIXELS} compares the pixels instead", *_others(data)))

    def better(self, read: Dataset, made: Dataset, choose: Callable[[Any], Chosen]) -> tuple[Dataset, Chosen | None]:
        """The images as they were read, where their pixels have clearer clusters than the vectors of the usual network.

        `choose` is that of the front door. Where nothing was asked for, the search is done for both, and pixels (faces,
        digits, scans) are taken if their settings agree more: by `_CLEARER` of an adjusted Rand index. What was chosen
        for the points that are taken comes with them, so that nobody has to search again; None where nothing was tried.
        """
        if self.spec is not None or read.image_shape is None or made.features is None:
            return made, None
        tried = [choose(data.X) for data in (read, made)]
        pixels, network = (_agreement(selection) for _, selection in tried)
        found = f"settings agree by {pixels:.2f} of 1 on the pixels and by {network:.2f} on what {USUAL} sees"
        if pixels <= network + _CLEARER:
            return replace(made, notes=(f"{made.notes[0]} ({found})", *made.notes[1:])), tried[1]
        compared = f"pixels are compared: {found}; {OPTION} {USUAL} takes the latter"
        return replace(read, notes=(*read.notes, compared)), tried[0]

    def in_python(self, lines: str, data: Dataset) -> str:
        """Lines of Python that make the same points, from those that read the file."""
        if data.features is None:
            return lines
        imports, _, reading = lines.rpartition("\n\n")
        name = data.features.name
        made = reading.replace("X = ", "X = featured(", 1).removesuffix(".X") + f", {name!r}).X"
        return f"from subspaces.app.features import featured\n{imports}\n\n{made}"


ALIGNED = (
    "pixels are compared, which is right for aligned images only (faces, digits, scans); "
    'pip install "subspaces[images]" brings a network that knows photographs'
)


def features_of_model(spec: str | None, reading: Reading) -> Extractor | None:
    """What makes vectors of new images for a model; only vectors of a file are given anew."""
    from subspaces.app.features.given import FromFile

    by_file = isinstance(reading.features, FromFile)
    if spec is None:
        if by_file:
            problem = f"the model was fitted to vectors of a file ({reading.features.name})"
            raise typer.BadParameter(f"{problem}; name the file with those of the new images", param_hint=OPTION)
        found: Extractor | None = reading.features
        if found is not None:
            _checked(found)
        return found
    if not by_file or not spec.lower().endswith(".npy"):
        own = "pixels or columns as they are" if reading.features is None else reading.features.name
        problem = f"the model has its own ({own}); leave it out" if not by_file else "must be a .npy file of vectors"
        raise typer.BadParameter(problem, param_hint=OPTION)
    return FromFile(spec)


def new_vectors(data: Dataset, extractor: Extractor | None) -> Dataset:
    """New images as the vectors that a model knows."""
    if extractor is None:
        return data
    from subspaces.app.features import featured

    with _refused():
        return replace(featured(data, extractor, is_fitted=True), notes=_others(data))


def _agreement(selection: Any) -> float:
    """How far settings agree on clusters; that all find one, or nothing to choose by, is no agreement."""
    if selection is None or selection.labels.max() == 0:
        return 0.0
    return float(selection.winner.agreement)


def _others(data: Dataset) -> tuple[str, ...]:
    """What was noted of a folder beside how its pixels were read, which comes first."""
    return data.notes[1:] if data.is_image_folder else data.notes


def _checked(extractor: Extractor) -> None:
    try:
        extractor.check()
    except ImportError as error:
        raise Refusal(str(error)) from error


@contextmanager
def _refused() -> Iterator[None]:
    """Networks that cannot be had, and pictures that they cannot see, in one line."""
    from subspaces.app.files import FileError

    try:
        yield
    except FileError:
        raise
    except (ImportError, RuntimeError, ValueError) as error:
        raise Refusal(str(error)) from error
