"""Estimators in scikit-learn's manner: they hold parameters, ask the engine for a fit and keep its result."""
