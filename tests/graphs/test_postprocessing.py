"""The published treatments of C against the authors' loops, written plainly."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_array, csr_array, issparse

from subspaces.graphs import postprocessing
from subspaces.graphs.postprocessing import (
    dscnet_affinity,
    keep_column_mass,
    row_space_affinity,
    scale_columns_to_max,
)
from subspaces.representation.coefficients import Factors, from_dense, from_factors

N_POINTS = 60
TREATMENTS = {
    "mass": lambda C: keep_column_mass(C, 0.6),
    "scale": scale_columns_to_max,
    "row space": row_space_affinity,
    "dscnet": lambda C: dscnet_affinity(C, 3, 2, share=0.5, power=3.0),
}
every_treatment = pytest.mark.parametrize("treat", TREATMENTS.values(), ids=TREATMENTS.keys())


@pytest.fixture
def C(rng):
    """Signed coefficients, stronger inside three blocks, zero diagonal."""
    C = 0.1 * rng.normal(size=(N_POINTS, N_POINTS)) + np.kron(np.eye(3), rng.normal(size=(20, 20)))
    np.fill_diagonal(C, 0)
    return C


def dense(matrix):
    return matrix.toarray() if issparse(matrix) else matrix


def loop_threshold(C, share, exceeds):
    """thrC entry by entry; SSC stops when the sum reaches the share, DSC-Net when it exceeds it."""
    kept = np.zeros_like(C)
    for i in range(C.shape[1]):
        order = np.argsort(-np.abs(C[:, i]), kind="stable")
        goal, total = share * np.abs(C[order, i]).sum(), 0.0
        for j in order:
            kept[j, i] = C[j, i]
            total += abs(C[j, i])
            if total > goal or (total >= goal and not exceeds):
                break
    return kept


@pytest.mark.parametrize("share", [0.04, 0.5, 0.95])
@pytest.mark.parametrize("exceeds", [False, True])
def test_keep_column_mass_is_the_authors_loop(C, share, exceeds):
    expected = loop_threshold(C, share, exceeds)
    np.testing.assert_array_equal(keep_column_mass(C, share, until_exceeded=exceeds).toarray(), expected)
    np.testing.assert_array_equal(keep_column_mass(csr_array(C), share, until_exceeded=exceeds).toarray(), expected)


def test_keep_column_mass_on_ties():
    C = np.full((4, 4), -0.25)
    np.testing.assert_array_equal(keep_column_mass(C, 0.5).toarray(), loop_threshold(C, 0.5, False))
    np.testing.assert_array_equal(keep_column_mass(C, 0.5, until_exceeded=True).toarray(), loop_threshold(C, 0.5, True))
    np.testing.assert_array_equal(np.diff(keep_column_mass(C, 0.5).indptr), 2)  # the first two reach one half
    np.testing.assert_array_equal(np.diff(keep_column_mass(C, 0.5, until_exceeded=True).indptr), 3)  # exceed it


def test_share_one_keeps_everything(C):
    C[3, 5] = 1e-300  # lost in any sum
    np.testing.assert_array_equal(keep_column_mass(C, 1).toarray(), C)


@pytest.mark.parametrize("make", [csc_array, csr_array, coo_array])
def test_sparse_input_needs_no_order_and_no_zeros(C, make):
    C[np.abs(C) < 0.3] = 0
    C[:, 7] = 0
    expected = keep_column_mass(C, 0.6)
    found = keep_column_mass(make(C), 0.6)
    np.testing.assert_array_equal(found.toarray(), expected.toarray())
    assert found.nnz == expected.nnz == np.count_nonzero(expected.toarray())
    np.testing.assert_array_equal(keep_column_mass(csc_array((60, 60)), 0.6).toarray(), 0)
    twice = coo_array((np.r_[C.ravel(), C.ravel()], np.tile(np.indices(C.shape).reshape(2, -1), 2)), C.shape)
    np.testing.assert_allclose(keep_column_mass(twice, 0.6).toarray(), 2 * expected.toarray())


def test_scale_columns_to_max(C):
    C[:, 4] = 0
    expected = np.array([column / np.abs(column).max() if column.any() else column for column in C.T]).T
    np.testing.assert_array_equal(scale_columns_to_max(C), expected)
    scaled = scale_columns_to_max(csr_array(C))
    assert issparse(scaled)
    np.testing.assert_array_equal(scaled.toarray(), expected)


@pytest.mark.parametrize("power", [2, 3, 4.5])
def test_row_space_affinity_is_builder_g4(C, rng, power):
    low_rank = C @ rng.normal(size=(N_POINTS, 7)) @ rng.normal(size=(7, N_POINTS))
    for Z in (C, low_rank):
        U, singular, _ = np.linalg.svd(Z)
        kept = singular > 1e-4 * singular[0]
        M = U[:, kept] * np.sqrt(singular[kept])
        M /= np.linalg.norm(M, axis=1, keepdims=True)
        np.testing.assert_allclose(row_space_affinity(Z, power), np.abs(M @ M.T) ** power, atol=1e-7)
        np.testing.assert_allclose(row_space_affinity(csr_array(Z), power), np.abs(M @ M.T) ** power, atol=1e-7)


def authors_dscnet(C, n_clusters, dim, share, power):
    """thrC and post_proC of the released program, with a full SVD in place of ARPACK."""
    C = loop_threshold(C, share, True)
    C = 0.5 * (C + C.T)
    C = C - np.diag(np.diag(C)) + np.eye(len(C))
    U, singular, _ = np.linalg.svd(C)
    rank = dim * n_clusters + 1
    U = U[:, :rank] * np.sqrt(singular[:rank])
    U = U / np.linalg.norm(U, axis=1, keepdims=True)
    Z = U @ U.T
    L = np.abs((Z * (Z > 0)) ** power)
    L = L / L.max()
    return 0.5 * (L + L.T)


@pytest.mark.parametrize(("share", "power"), [(0.3, 8.0), (0.9, 3.5), (0.6, 1.0)])
@pytest.mark.parametrize("lanczos", [False, True])
def test_dscnet_affinity_is_the_released_program(rng, share, power, lanczos, monkeypatch):
    C = rng.normal(size=(N_POINTS, N_POINTS))  # no blocks: one that the leading part misses is 0/0 in the original
    if lanczos:
        monkeypatch.setattr(postprocessing, "DENSE_EIGH_POINTS", 0)
    settings = {"share": share, "power": power}
    W = dscnet_affinity(C, 3, 1, **settings)
    np.testing.assert_allclose(W, authors_dscnet(C, 3, 1, **settings), atol=1e-7)
    np.testing.assert_allclose(dscnet_affinity(csr_array(C), 3, 1, **settings), W, atol=1e-7)
    np.testing.assert_array_equal(dscnet_affinity(C, 3, 1, **settings), W)  # the same bits every time


@every_treatment
def test_dense_sparse_and_lazy_coefficients_are_treated_alike(C, treat):
    expected = dense(treat(C))
    np.testing.assert_allclose(dense(treat(csc_array(C))), expected, atol=1e-9)
    left, singular_values, right = np.linalg.svd(C)
    for wrapped in (from_dense(C), from_factors(Factors(left, singular_values, right.T))):
        np.testing.assert_allclose(dense(treat(wrapped)), expected, atol=1e-9)


@every_treatment
def test_block_size_does_not_matter(C, monkeypatch, treat):
    whole = dense(treat(C))
    monkeypatch.setattr(postprocessing, "row_blocks", lambda n, *_: [(i, min(i + 7, n)) for i in range(0, n, 7)])
    np.testing.assert_array_equal(dense(treat(C)), whole)
    np.testing.assert_allclose(dense(treat(csr_array(C))), whole, atol=1e-9)


@every_treatment
def test_float32_stays_float32(C, treat):
    single = C.astype(np.float32)
    for form in (single, csr_array(single), from_dense(single)):
        result = treat(form)
        assert result.dtype == np.float32
        np.testing.assert_allclose(dense(result), dense(treat(single.astype(float))), atol=1e-4)


@every_treatment
def test_input_is_not_changed_and_may_be_read_only(C, treat):
    sparse_C, before = csc_array(C), C.copy()
    C.flags.writeable = sparse_C.data.flags.writeable = False
    treat(C)
    treat(sparse_C)
    np.testing.assert_array_equal(C, before)
    np.testing.assert_array_equal(sparse_C.toarray(), before)


@every_treatment
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_points_without_coefficients_never_give_nan(C, treat, dtype):
    C = C.astype(dtype)
    C[[2, 9]] = 0
    C[:, [2, 9]] = 0
    for form in (C, csr_array(C), np.zeros_like(C), csc_array(C.shape, dtype=dtype), C[:1, :1]):
        assert np.isfinite(dense(treat(form))).all()
    others = np.delete(np.arange(N_POINTS), [2, 9])
    result = dense(treat(C))
    assert not result[np.ix_([2, 9], others)].any()
    assert not result[np.ix_(others, [2, 9])].any()


def test_points_without_coefficients_get_no_edges_from_rounding(rng):
    V = np.linalg.qr(rng.normal(size=(N_POINTS, 3)))[0]
    V[[0, 1]] = 0
    assert not row_space_affinity(V @ V.T)[[0, 1]].any()


def test_errors_name_the_argument(C):
    for share in (0, 1.5):
        with pytest.raises(ValueError, match=rf"share must be in \(0, 1\], got {share}"):
            keep_column_mass(C, share)
    with pytest.raises(ValueError, match=r"C must be a square matrix.*got shape \(60, 3\)"):
        row_space_affinity(C[:, :3])
    with pytest.raises(ValueError, match=r"power must be positive, got 0"):
        row_space_affinity(C, 0)
    with pytest.raises(ValueError, match=r"n_clusters must be at least 1, got 0"):
        dscnet_affinity(C, 0, 3)
    with pytest.raises(ValueError, match=r"subspace_dim must be at least 1, got 0"):
        dscnet_affinity(C, 3, 0)
