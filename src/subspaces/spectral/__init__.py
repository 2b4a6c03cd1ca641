"""Pure functions from a graph to labels: embedding, cuts, k-means, merging, the tree of clusters."""
