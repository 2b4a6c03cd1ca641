"""Look at fitted estimators: plots, comparisons of methods, citations."""
