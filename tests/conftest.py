"""Fixtures shared by all tests: one seed, threads that do not fight, and real data where there is any."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  (threadpoolctl limits only what is already loaded)
import sklearn.cluster  # noqa: F401
from hypothesis import settings
from threadpoolctl import threadpool_limits

# the same examples on every run: a failure in CI must be a failure at home
settings.register_profile("subspaces", deadline=None, derandomize=True, database=None, max_examples=50)
settings.register_profile(
    "long", deadline=None, max_examples=1000
)  # --hypothesis-profile=long: new examples every time
settings.load_profile("subspaces")


TESTS = Path(__file__).resolve().parent
SLOW = (
    "cli/test_cli.py",
    "cli/test_cli_features.py",
    "cli/test_cli_image.py::test_map_of_an_envi",
    "cli/test_cli_image.py::test_report_with",
    "cli/test_cli_motion.py::test_overlay",
    "cli/test_cli_output.py::test_from_a_folder",
    "cli/test_cli_output.py::test_two_answers",
    "cli/test_cli_process.py",
    "cli/test_cli_repeat.py",
    "datasets/test_datasets.py::test_real_data",
    "datasets/test_datasets_files.py::test_fetch_coil",
    "deep/",
    "distributed_routes/",
    "dropins/",
    "spectral/test_spectral.py::test_multigrid_is",
    "spectral/test_spectral.py::test_weakly_tied",
    "engine/test_kept_coefficients.py",
    "engine/test_plan.py::test_what_does_not_fit",
    "engine/test_run.py::test_every_method",
    "engine/test_run.py::test_the_order",
    "estimators/test_consistency.py",
    "estimators/test_estimators.py",
    "estimators/test_invariances.py",
    "estimators/test_landmark_methods.py",
    "estimators/test_sampled.py::test_scikit_learn_checks",
    "estimators/test_sampled.py::test_votes",
    "explorer/test_browser",
    "explorer/test_explore_page.py::test_report_of",
    "explorer/test_explore_texts.py::test_report_has",
    "explorer/test_explore_texts.py::test_server_stops",
    "explorer/test_explore_page.py::test_points_that_are",
    "explorer/test_explore.py::test_starts_with",
    "explorer/test_explore.py::test_same_labels",
    "faults/",
    "features/test_features.py::test_a_model_remembers",
    "features/test_features.py::test_the_cache_is_bounded",
    "features/test_networks.py",
    "fuzz/",
    "graphs/test_local.py::test_lsa_is",
    "graphs/test_local.py::test_smce_solves",
    "hyperspectral/test_image.py::test_real_scene",
    "files/test_models.py::test_every_method",
    "machines/",
    "utils/test_components.py::test_front_door",
    "utils/test_components.py::test_route",
    "utils/test_components.py::test_sparse_points",
    "utils/test_cells.py::test_search_finds_most",
    "utils/test_degenerate_spectra.py",
    "utils/test_kmeans.py::test_finds_the_optimum",
    "utils/test_kmeans.py::test_not_worse",
    "plots/test_plots.py::test_nothing_is_drawn",
    "plots/test_plots_tree.py::test_from_estimators",
    "project/test_architecture.py::test_picture",
    "project/test_benchmarks.py",
    "project/test_console.py::test_pages",
    "project/test_docs.py::test_examples_run",
    "project/test_manual.py::test_example_runs",
    "project/test_manual.py::test_manual_builds",
    "project/test_package.py::test_import_loads",
    "project/test_release.py",
    "properties/",
    "report/test_browser",
    "report/test_report.py::test_nothing_is_fetched",
    "report/test_report.py::test_page_says",
    "report/test_report.py::test_policy",
    "report/test_report.py::test_ten_thousand_points",
    "report/test_report_answers.py::test_commands",
    "report/test_report_answers.py::test_other_numbers",
    "report/test_report_tree.py::test_section_shows",
    "report/test_report_tree.py::test_verdict",
    "report/test_report_tree.py::test_what_is_known",
    "representation/test_block_diagonal.py",
    "representation/test_contract.py",
    "representation/test_elastic_net.py",
    "representation/test_elastic_net_steps.py::test_trace",
    "representation/test_low_rank.py",
    "representation/test_low_rank_contract.py",
    "representation/test_low_rank_parts.py::test_single_precision",
    "representation/test_low_rank_parts.py::test_stages",
    "representation/test_low_rank_parts.py::test_tolerance",
    "representation/test_sparse.py",
    "representation/test_two_scale.py",
    "reproduction/test_paper_figures.py",
    "reproduction/test_paper_cells.py::test_real_data",
    "reproduction/test_paper_page.py::test_whole_experiment",
    "reproduction/test_paper_runs.py",
    "selection/test_number.py::test_what_settings_find",
    "selection/test_selection.py",
    "selection/test_trajectories.py::test_hopkins",
    "test_confidence.py::test_informative",
    "test_cut_to_number.py::test_of_many",
    "test_cut_to_number.py::test_order",
    "test_cut_to_number.py::test_small_pieces",
    "test_hierarchy.py::test_clusters_smaller",
    "test_hierarchy.py::test_estimators_hand",
    "test_progress.py::test_the_search",
)
"""What ``-m "not slow"`` leaves out: beginnings of the names of tests, files and folders below this one."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not load files of which the quick subset runs nothing: that takes longer than many tests."""
    if config.option.markexpr != "not slow" or not collection_path.is_relative_to(TESTS):
        return None
    place = collection_path.relative_to(TESTS).as_posix() + "/" * collection_path.is_dir()
    return place.startswith(SLOW) or None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `SLOW` names."""
    for item in items:
        if item.nodeid.removeprefix("tests/").startswith(SLOW):
            item.add_marker("slow")


def pytest_configure(config: pytest.Config) -> None:
    """One BLAS and OpenMP thread per xdist worker, as in scikit-learn's own tests."""
    if os.environ.get("PYTEST_XDIST_WORKER_COUNT") is not None:
        threadpool_limits(1)


@pytest.fixture
def seed() -> int:
    """Seed of the whole run (environment variable SUBSPACES_TEST_SEED); tests must hold for any."""
    return int(os.environ.get("SUBSPACES_TEST_SEED", "42"))


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture
def no_figure_is_left() -> Iterator[None]:
    """Pictures that open no window, and are closed after the test."""
    import matplotlib
    from matplotlib import pyplot

    matplotlib.use("Agg")
    yield
    pyplot.close("all")


@pytest.fixture(scope="session")
def data_home() -> Path:
    """Folder of the real data sets: SUBSPACES_DATA, or ../shared/data beside the checkout."""
    named = os.environ.get("SUBSPACES_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real data: the folder {folder} does not exist; set SUBSPACES_DATA to the one that holds it")
    return folder
