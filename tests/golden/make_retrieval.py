"""How retrieval.json was made: pytorch-metric-learning's AccuracyCalculator on seven searches.

It needs PyTorch, so use an environment of its own:

    python -m venv torch
    torch/bin/pip install torch==2.13.0 pytorch-metric-learning==2.9.0 scikit-learn faiss-cpu
    LATENTMETRIC_DATA=folder PYTHONPATH=tests torch/bin/python tests/golden/make_retrieval.py

Without the benchmarks' data the golden values of its two searches stay as they are. Neighbours are
those that the calculator finds, in float32.
"""

import json
import os
from pathlib import Path

import torch
from golden.retrieval_searches import searches
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator, precision_at_k

PATH = Path(__file__).with_name("retrieval.json")
NAMES = {
    "precision_at_1": "precision@1",
    "precision_at_5": "precision@5",
    "mean_average_precision_at_r": "map@r",
    "r_precision": "r_precision",
    "mean_reciprocal_rank": "mrr",
}


class Calculator(AccuracyCalculator):
    """With the precision at 5 as well, by the library's own function."""

    def calculate_precision_at_5(self, knn_labels, query_labels, not_lone_query_mask, **_):
        found, truth = knn_labels[not_lone_query_mask], query_labels[not_lone_query_mask]
        return precision_at_k(found, truth[:, None], 5, False, False, torch.eq)


def scores_of(search):
    calculator = Calculator(include=tuple(NAMES), device=torch.device("cpu"))
    found = calculator.get_accuracy(*search)
    return {ours: found[theirs] for theirs, ours in NAMES.items()}


def main():
    golden = json.loads(PATH.read_text()) if PATH.exists() else {}
    for name, make in searches(os.environ.get("LATENTMETRIC_DATA")).items():
        golden[name] = scores_of(make())
        print(name, golden[name], flush=True)
    PATH.write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
