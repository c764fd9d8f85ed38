"""The classifiers of scikit-learn that one would use instead, with parameters chosen for the data.

Each is chosen from a few candidates, with and without standardised columns, by cross-validation on
a sample of the training rows, and then fitted to the training rows.
"""

from latentmetric.evaluation.rivals.fitting import SCALED, TUNED, Rival, fit_rival

__all__ = ["SCALED", "TUNED", "Rival", "fit_rival"]
