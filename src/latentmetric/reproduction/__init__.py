"""The paper's experiments, and what a user would pick instead, on the same splits."""
