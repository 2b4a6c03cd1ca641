"""What knows nothing of clustering: ordering, ties, memory, guarded decompositions, progress, types."""
