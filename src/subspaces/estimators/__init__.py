"""The methods as scikit-learn estimators; :mod:`subspaces.registry` lists them."""
