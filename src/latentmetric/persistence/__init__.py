"""Files that models and fits are kept in: numbers and JSON, no code, whole or not at all."""
