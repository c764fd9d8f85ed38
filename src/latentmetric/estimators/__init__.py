"""What scikit-learn users touch: parameters in, fitted attributes out."""
