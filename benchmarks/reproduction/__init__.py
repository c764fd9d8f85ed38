"""The paper's experiments, and common alternatives, on the same training and test rows."""
