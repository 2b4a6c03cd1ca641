"""scikit-learn's callbacks where it has them (since 1.9), and nothing in their place where it has not."""

from __future__ import annotations

from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn 1.7 and 1.8: fits are the same, but nobody can watch them

    def with_callbacks(fit: Any) -> Any:
        """Leave a method as it is."""
        return fit

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Announce the legs of a fit to nobody."""

        def _init_callback_context(self, **_: Any) -> _Nobody:
            return _Nobody()


class _Nobody:
    def subcontext(self, **_: Any) -> _Nobody:
        return self

    def call_on_fit_task_begin(self, **_: Any) -> None:
        pass

    call_on_fit_task_end = call_on_fit_task_begin


__all__ = ["CallbackSupportMixin", "with_callbacks"]
