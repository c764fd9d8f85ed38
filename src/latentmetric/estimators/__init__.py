"""The estimators in scikit-learn's style: parameters in, fitted attributes out."""
