"""The only driver: a plan, its run, the fit result, labels and confidence of samples old and new."""
