"""The paper's tables and figures, our numbers beside the published ones: ``python -m reproduction``; see README.md."""
