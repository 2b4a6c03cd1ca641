"""Arrays in, arrays out: what knows nothing of clustering."""
