"""From points to labels, once for everybody: a plan, its stages, one run."""
