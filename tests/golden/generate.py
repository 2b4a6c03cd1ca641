"""Answers of small problems from an independent implementation: plain loops, NumPy's solvers and CVXPY.

Nothing of ``subspaces`` is imported. ``python tests/golden/generate.py`` writes ``golden.npz`` anew; the test compares
the package with the stored numbers. Every problem is written from the papers' formulas, not from the package's.
"""

from __future__ import annotations

import math
from pathlib import Path

import cvxpy as cp
import numpy as np

HERE = Path(__file__).resolve().parent


def points(seed: int, sizes: tuple[int, ...] = (7, 8, 6), m: int = 5, noise: float = 0.05) -> np.ndarray:
    """Noisy points of planes in R⁵, not scaled."""
    rng = np.random.default_rng(seed)
    parts = [rng.standard_normal((n, 2)) @ rng.standard_normal((2, m)) for n in sizes]
    X = np.vstack(parts)
    return X + noise * rng.standard_normal(X.shape)


def distances(X: np.ndarray) -> np.ndarray:
    n = len(X)
    D = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            D[i, j] = math.sqrt(sum((X[i, t] - X[j, t]) ** 2 for t in range(X.shape[1])))
    return D


def kernel_matrices(X: np.ndarray) -> dict[str, np.ndarray]:
    """The paper's kernels, entry by entry; σ² is the mean squared distance over all pairs."""
    n = len(X)
    D = distances(X)
    sigma = math.sqrt((D**2).sum() / n**2)
    K = {name: np.zeros((n, n)) for name in ("linear", "quadratic", "cubic", "cosine", "rbf", "exponential")}
    K |= {name: np.zeros((n, n)) for name in ("inverse_square", "inverse_distance", "correntropy")}
    s = sigma / math.sqrt(X.shape[1])
    for i in range(n):
        for j in range(n):
            dot = sum(X[i, t] * X[j, t] for t in range(X.shape[1]))
            norms = math.sqrt(sum(X[i] ** 2)) * math.sqrt(sum(X[j] ** 2))
            K["linear"][i, j], K["quadratic"][i, j], K["cubic"][i, j] = dot, dot**2, dot**3
            K["cosine"][i, j] = dot / norms
            K["rbf"][i, j] = math.exp(-(D[i, j] ** 2) / sigma**2)
            K["exponential"][i, j] = math.exp(-D[i, j] / sigma)
            K["inverse_square"][i, j] = 1 / (1 + D[i, j] ** 2 / sigma**2)
            K["inverse_distance"][i, j] = 1 / (1 + D[i, j] / sigma)
            K["correntropy"][i, j] = np.mean([math.exp(-((X[i, t] - X[j, t]) ** 2) / s**2) for t in range(X.shape[1])])
    return K


def ridge_codes(K: np.ndarray, lam: float) -> np.ndarray:
    """One small linear system per point, over all other points."""
    n = len(K)
    C = np.zeros((n, n))
    for i in range(n):
        others = [j for j in range(n) if j != i]
        C[others, i] = np.linalg.solve(K[np.ix_(others, others)] + lam * np.eye(n - 1), K[others, i])
    return C


def column_graph(C: np.ndarray, eta: int) -> np.ndarray:
    """The printed rule: η largest magnitudes of each column, then |C| + |C|ᵀ."""
    kept = np.zeros_like(C)
    for i in range(len(C)):
        for j in sorted(range(len(C)), key=lambda j: -abs(C[j, i]))[:eta]:
            kept[j, i] = abs(C[j, i])
    return kept + kept.T


def symmetric_graph(C: np.ndarray, eta: int) -> np.ndarray:
    """The authors' program: columns to maximum 1, symmetrised, η largest per column, symmetrised."""
    A = np.abs(C)
    for i in range(len(A)):
        A[:, i] /= A[:, i].max()
    return column_graph(A + A.T, eta)


def smallest_eigenvalues(W: np.ndarray, k: int) -> np.ndarray:
    d = W.sum(axis=1)
    L = np.eye(len(W)) - W / np.sqrt(np.outer(d, d))
    return np.sort(np.linalg.eigvals(L).real)[:k]


def ssc_codes(X: np.ndarray, alpha: float) -> np.ndarray:
    """min ‖c‖₁ + λ/2 ‖x − Xᵀc‖², c_i = 0 by CVXPY, λ = α/μ."""
    n = len(X)
    mu = min(max(abs(X[i] @ X[j]) for j in range(n) if j != i) for i in range(n))
    C = np.zeros((n, n))
    for i in range(n):
        c = cp.Variable(n)
        objective = cp.norm1(c) + alpha / mu / 2 * cp.sum_squares(X[i] - X.T @ c)
        cp.Problem(cp.Minimize(objective), [c[i] == 0]).solve(solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12)
        C[:, i] = c.value
    return C


def elastic_net_codes(X: np.ndarray, gamma: float, tau: float) -> np.ndarray:
    """min τ‖c‖₁ + (1 − τ)/2 ‖c‖² + γ_i/2 ‖x − Xᵀc‖², γ_i = gamma τ / max_j |x_jᵀx_i|."""
    n = len(X)
    C = np.zeros((n, n))
    for i in range(n):
        weight = gamma * tau / max(abs(X[i] @ X[j]) for j in range(n) if j != i)
        c = cp.Variable(n)
        objective = tau * cp.norm1(c) + (1 - tau) / 2 * cp.sum_squares(c) + weight / 2 * cp.sum_squares(X[i] - X.T @ c)
        cp.Problem(cp.Minimize(objective), [c[i] == 0]).solve(solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12)
        C[:, i] = c.value
    return C


def low_rank_objective(X: np.ndarray, reg: float, norm: str) -> float:
    """Smallest ‖Z‖_* + λ‖X − XZ‖, by CVXPY; points are columns here."""
    Xt = X.T
    Z = cp.Variable((len(X), len(X)))
    E = Xt - Xt @ Z
    error = cp.sum(cp.norm(E, axis=0)) if norm == "l21" else cp.sum(cp.abs(E))
    problem = cp.Problem(cp.Minimize(cp.normNuc(Z) + reg * error))
    problem.solve(solver="SCS", eps=1e-7, max_iters=100_000)
    return float(problem.value)


def main() -> None:
    """Compute everything and store it."""
    X = points(3)
    out: dict[str, np.ndarray] = {"X": X}
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    for name, K in kernel_matrices(X).items():
        out[f"K_{name}"] = K
        for reg in (0.01, 1.0):
            C = ridge_codes(K, reg * np.trace(K) / len(X))
            out[f"C_{name}_{reg}"] = C
            for rule, graph in (("column", column_graph), ("symmetric", symmetric_graph)):
                W = graph(C, 4)
                out[f"W_{rule}_{name}_{reg}"] = W
                out[f"mu_{rule}_{name}_{reg}"] = smallest_eigenvalues(W, 5)
    out["C_ssc"] = ssc_codes(unit, 20.0)
    out["C_ensc"] = elastic_net_codes(unit, 50.0, 0.9)
    for norm in ("l21", "l1"):
        out[f"objective_{norm}"] = np.array(low_rank_objective(unit, 0.5, norm))
    np.savez_compressed(HERE / "golden.npz", **{key: np.asarray(value) for key, value in out.items()})


if __name__ == "__main__":
    main()
