"""How often the recorded objective rises, on the small data sets that come with scikit-learn.

    python benchmarks/convergence.py

Default parameters but for what the rows of the table name, seeds 0 to 3, ten rounds each.
"""

from __future__ import annotations

import numpy as np
from common import gemm_gflops, machine_facts, no_options, table, write_json
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from latentmetric import MaPML

SETS = {
    "digits": load_digits,
    "wine": load_wine,
    "iris": load_iris,
    "breast cancer": load_breast_cancer,
}
VARIANTS = {
    "defaults": {},
    "metric_reg=17": {"metric_reg": 17.0},
    "latent_reg=10": {"latent_reg": 10.0},
    "max_norm=1.5": {"max_norm": 1.5},
}


def main() -> None:
    no_options(__doc__)
    results = {"machine": machine_facts(gemm_gflops()), "runs": []}
    for variant, parameters in VARIANTS.items():
        for name, load in SETS.items():
            X, y = load(return_X_y=True)
            for seed in range(4):
                history = MaPML.as_published(random_state=seed, **parameters).fit(X, y).history_
                objectives = [record["objective"] for record in history]
                run = {"variant": variant, "set": name, "seed": seed, "objectives": objectives}
                results["runs"].append(run)
    rows = []
    for variant in VARIANTS:
        for name in SETS:
            runs = [
                run["objectives"]
                for run in results["runs"]
                if (run["variant"], run["set"]) == (variant, name)
            ]
            rises = sum(int(np.sum(np.diff(run) > 0)) for run in runs)
            last = np.mean([run[-1] / run[0] for run in runs])
            best = np.mean([min(run) / run[0] for run in runs])
            rows.append(
                [variant, name, f"{rises} of {10 * len(runs)}", f"{last:.2f}", f"{best:.2f}"]
            )
    print(table(["parameters", "set", "rounds that rose", "last / first", "best / first"], rows))
    print(write_json("convergence", results))


if __name__ == "__main__":
    main()
