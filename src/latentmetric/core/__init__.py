"""The paper as plain functions on arrays: no estimators, no files, no printing."""
