"""A few points that stand for many: how they are drawn, and what carries their labels to the rest."""
