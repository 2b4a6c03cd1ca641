"""Compare labels with known classes, and methods with each other: scores, tables of scores, tests of significance."""

from subspaces.metrics.scores import (
    CONSTANT as CONSTANT,
)
from subspaces.metrics.scores import (
    PAPER_SCORES as PAPER_SCORES,
)
from subspaces.metrics.scores import (
    SCORES as SCORES,
)
from subspaces.metrics.scores import (
    Score as Score,
)
from subspaces.metrics.scores import (
    ScoreTable as ScoreTable,
)
from subspaces.metrics.scores import (
    accuracy as accuracy,
)
from subspaces.metrics.scores import (
    adjusted_rand as adjusted_rand,
)
from subspaces.metrics.scores import (
    best_matching as best_matching,
)
from subspaces.metrics.scores import (
    clustering_scores as clustering_scores,
)
from subspaces.metrics.scores import (
    contingency as contingency,
)
from subspaces.metrics.scores import (
    normalized_mutual_info as normalized_mutual_info,
)
from subspaces.metrics.scores import (
    pairwise_f_score as pairwise_f_score,
)
from subspaces.metrics.scores import (
    pairwise_precision as pairwise_precision,
)
from subspaces.metrics.scores import (
    pairwise_recall as pairwise_recall,
)
from subspaces.metrics.scores import (
    purity as purity,
)
from subspaces.metrics.scores import (
    score_table as score_table,
)
