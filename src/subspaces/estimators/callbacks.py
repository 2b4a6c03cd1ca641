"""scikit-learn's callbacks where it has them (since 1.9), and nothing in their place where it has not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn 1.7 and 1.8: fits are the same, but nobody can watch them

    def with_callbacks(fit: Any) -> Any:
        """Leave a method as it is."""
        return fit

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Announce the stages of a fit to nobody."""

        def _init_callback_context(self, **_: Any) -> _Nobody:
            return _Nobody()


class _Nobody:
    def subcontext(self, **_: Any) -> _Nobody:
        return self

    def call_on_fit_task_begin(self, **_: Any) -> None:
        pass

    call_on_fit_task_end = call_on_fit_task_begin


@contextmanager
def announced(estimator: Any, max_stages: int | None = None) -> Iterator[Callable[[str], AbstractContextManager[None]]]:
    """Gives what tells an estimator's callbacks of the stages of its fit, `max_stages` at most if that is known.

    A stage may come in several parts, or not at all.
    """
    context = estimator._init_callback_context(max_subtasks=max_stages)
    seen: list[str] = []

    @contextmanager
    def stage(name: str) -> Iterator[None]:
        if name in seen:
            yield
            return
        seen.append(name)
        task = context.subcontext(task_name=name)
        task.call_on_fit_task_begin(estimator=estimator)
        yield
        task.call_on_fit_task_end(estimator=estimator)

    context.call_on_fit_task_begin(estimator=estimator)
    yield stage
    context.call_on_fit_task_end(estimator=estimator)


__all__ = ["CallbackSupportMixin", "announced", "with_callbacks"]
