"""Compare labels with known classes, and methods with each other: scores, tests of significance, tables."""

from subspaces.metrics.scores import (
    CONSTANT,
    PAPER_SCORES,
    SCORES,
    Score,
    ScoreTable,
    accuracy,
    adjusted_rand,
    best_matching,
    clustering_scores,
    contingency,
    normalized_mutual_info,
    pairwise_f_score,
    pairwise_precision,
    pairwise_recall,
    purity,
    score_table,
)

__all__ = [
    "CONSTANT",
    "PAPER_SCORES",
    "SCORES",
    "Score",
    "ScoreTable",
    "accuracy",
    "adjusted_rand",
    "best_matching",
    "clustering_scores",
    "contingency",
    "normalized_mutual_info",
    "pairwise_f_score",
    "pairwise_precision",
    "pairwise_recall",
    "purity",
    "score_table",
]
