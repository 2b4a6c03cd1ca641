"""``--features``: what makes vectors of images and texts, checked before a file is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from subspaces.app.cli._common import Refusal, refuse

if TYPE_CHECKING:
    from subspaces.app.cli._options import Reading
    from subspaces.app.features import Extractor
    from subspaces.app.files import Dataset
    from subspaces.app.files.models import Reading as ModelReading

OPTION, PIXELS, USUAL = "--features", "pixels", "efficientnet"
_CLEARER = 0.02  # nearly equal agreement says nothing: then the network, which knows photographs
ALIGNED = (
    "pixels are compared, which is right for aligned images only (faces, digits, scans); "
    'pip install "subspaces[images]" brings a network that knows photographs'
)


@dataclass(frozen=True)
class Features:
    """What was asked for: nothing, pixels, or an extractor."""

    spec: str | None = None
    extractor: Extractor | None = None

    @classmethod
    def checked(cls, reading: Reading, excluded: str | None = None) -> Self:
        """Refuse an unknown extractor, one that is not installed, and options that have no meaning with it.

        Who gives the size or the colours of pixels wants to compare pixels. `excluded` is an option that was given and
        has no meaning with features.
        """
        spec, of_pixels = reading.features, [name for name in ("image_size", "color") if name in reading.given]
        if spec is None or spec == PIXELS:
            return cls(PIXELS if of_pixels else spec)
        if excluded is not None:
            raise refuse(OPTION, f"has no meaning with {excluded}")
        if of_pixels:
            raise refuse(of_pixels[0], "is for --features pixels; others read the files as they need")
        from subspaces.app.features import as_extractor

        try:
            extractor = as_extractor(spec)
            extractor.check()
        except (ValueError, ImportError) as error:
            raise refuse(OPTION, str(error)) from error
        return cls(spec, extractor)

    def of(self, data: Dataset) -> Dataset:
        """Return the samples as they are clustered.

        Images and texts become vectors where that is asked for or usual.
        """
        if data.texts is not None:
            return self._of_texts(data)
        if data.image_shape is None:
            if self.spec is not None:
                raise refuse(OPTION, f"is for images and texts, and {data.source} holds none")
            return data
        if self.spec == PIXELS or (self.spec is None and not data.is_image_folder):
            return data
        from subspaces.app.features.networks import EfficientNet, is_installed

        if self.spec is None and not is_installed():
            return replace(data, notes=(*data.notes, ALIGNED))
        extractor = self.extractor or EfficientNet()
        made = _made(data, extractor)
        what = f"each of {len(made.X)} images became {made.X.shape[1]} {extractor.kind} ({extractor.title})"
        return replace(made, notes=(f"{what}; {OPTION} {PIXELS} compares the pixels instead", *_others(data)))

    def _of_texts(self, data: Dataset) -> Dataset:
        from subspaces.app.features.documents import INSTALL, is_installed, usual

        if self.spec == PIXELS:
            raise refuse(OPTION, f"texts have no pixels ({data.source})")
        extractor = self.extractor or usual(data.texts or [])
        made = _made(data, extractor)
        what = f"each of {made.n_samples} texts became {made.X.shape[1]} {extractor.kind} ({extractor.name})"
        other = "sentences" if extractor.name == "tfidf" else "tfidf"
        how = f"{OPTION} {other} is another way" if is_installed() else f"{INSTALL} brings word vectors for short ones"
        return replace(made, notes=(f"{what}; {how}", *data.notes))

    def better(self, read: Dataset, made: Dataset, choose: Callable[[Any], Any]) -> tuple[Dataset, Any]:
        """Return the images as they were read, where pixels have clearer clusters than vectors of the usual network.

        `choose` is that of `SubspaceClustering`. Where nothing was asked for, the search is done for both, and pixels
        (faces, digits, scans) are taken if their settings agree more: by `_CLEARER` of an adjusted Rand index. The
        choice for the samples that are taken comes with them, so that nobody searches again; None if nothing was tried.
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


def features_in_python(lines: str, data: Dataset) -> str:
    """Return lines of Python that make the same samples, from those that read the file."""
    if data.features is None:
        return lines
    imports, _, reading = lines.rpartition("\n\n")
    made = reading.replace("X = ", "X = featured(", 1).removesuffix(".X") + f", {data.features.name!r}).X"
    return f"from subspaces.app.features import featured\n{imports}\n\n{made}"


def features_of_model(spec: str | None, reading: ModelReading) -> Extractor | None:
    """Return what makes vectors of new images for a model; only vectors of a file are given anew."""
    from subspaces.app.features.extractor import FromFile

    known: Extractor | None = reading.features
    if not isinstance(known, FromFile):
        if spec is not None:
            own = "pixels or columns as they are" if known is None else known.name
            raise refuse(OPTION, f"the model has its own ({own}); leave it out")
        return known
    if spec is None:
        problem = f"the model was fitted to vectors of a file ({known.name})"
        raise refuse(OPTION, f"{problem}; name the file with those of the new images")
    if not spec.lower().endswith(".npy"):
        raise refuse(OPTION, "must be a .npy file of vectors")
    return FromFile(spec)


def new_vectors(data: Dataset, extractor: Extractor | None) -> Dataset:
    """Return new images as the vectors that a model knows."""
    if extractor is None:
        return data
    return replace(_made(data, extractor, is_fitted=True), notes=_others(data))


def _made(data: Dataset, extractor: Extractor, is_fitted: bool = False) -> Dataset:
    """Make vectors; networks that cannot be had, and pictures that they cannot see, end in one line."""
    from subspaces.app.features import featured
    from subspaces.app.files import FileError

    try:
        return featured(data, extractor, is_fitted)
    except FileError:
        raise
    except (ImportError, RuntimeError, ValueError) as error:
        raise Refusal(str(error)) from error


def _agreement(selection: Any) -> float:
    """Return how far settings agree on clusters; 0 where all find one, or there was nothing to choose by."""
    if selection is None or selection.labels.max() == 0:
        return 0.0
    return float(selection.winner.agreement)


def _others(data: Dataset) -> tuple[str, ...]:
    """Return the notes on a folder except the first, which says how its pixels were read."""
    return data.notes[1:] if data.is_image_folder else data.notes
