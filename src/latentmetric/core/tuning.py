"""The constants that tune something, in one table.

Each line says what the number is and names the benchmark that shows what a change does: run that
before changing it. Bounds that only guard against rounding stay beside the code that needs them.
"""

from __future__ import annotations

import numpy as np

# Where the metric starts, and the race that chooses among the starts.
SHRINKAGE = 0.5  # of the covariance within classes towards its diagonal; small_sets.py
GROUP_ROWS = 10  # rows per group of the denoised start, in the mean; picture.py
GROUP_PASSES = 3  # assignments of rows to groups; picture.py
MIN_SIGNAL = 0.04  # the least share that a direction of the denoised start keeps; picture.py
RACE_ROWS = 3_000  # rows of the sample that the race runs on; quality.py
JUDGING_SHARE = 1 / 3  # of the sample, held out to judge the starts; quality.py
RACE_RANK = 512  # most of a metric in the race; quality.py
RACE_STEPS = 2_000  # most steps of Alg. 2 in the race's round; quality.py
REL_TOL = 0.05  # a start must lower the loss of a simpler one by this share; quality.py
NEAR_BASE = 0.9  # of the loss of always saying the base rates: starts that lose more tie; fuzz.py
NEAR_CHANCE = 0.95  # of the error of the largest class: only if all err more, too; small_tables.py
MIN_GAIN = 0.2  # the same for "denoised"; picture.py
ESTIMATION_ROWS = 16_384  # rows that the chosen start is estimated from; quality.py

# Few rows: what the fit chooses, and its refinement.
CHOOSING_ROWS = 20_000  # up to this many, trials choose how to fit; tables.py
CHOOSING_NUMBERS = 2**26  # rows times features times rank, the most for that; quality.py
DENSE_ROWS = 1_500  # up to this many, all rows are refined at once; tables.py
EASY_ROWS = 2_000  # up to this many if classes are easy to tell apart; small_tables.py
EASY = 0.1  # of the loss of base rates: trials of such classes lose less; small_tables.py
DENSE_PAIRS = 2**24  # of rows and latent examples, the most for that; tables.py
OVERLAPPING = 0.75  # of the loss of base rates: more rows too if trials lose more; tables.py
OWN_BANDWIDTHS = 0.8  # of the loss of a shared one: more rows too if they lose less; tables.py
DENSE_SHARE = 0.3  # T as a multiple of the latent examples' spacing, at least; tables.py
DENSE_ITERATIONS = 7  # of L-BFGS for each pass of the refinement; quality.py
SETTLED_LOSS = 1e-4  # L-BFGS ends if an iteration gains less; tables.py
BANDWIDTH_PULL, WEIGHT_PULL = 1.0, 0.1  # of log bandwidths and log weights to 0, as rows; tables.py
TRIAL_ROWS, FEWEST_TRIAL_ROWS = 1_200, 300  # of the sample that candidates are tried on; tables.py
TRIAL_NUMBERS = 30_000  # numbers of that sample, if it may have more rows; small_tables.py
TRIAL_ROWS_A_CLASS = 4  # of that sample, at least; tables.py
TRIAL_FOLDS = 3  # of that sample; tables.py
FEW_ROWS_A_FEATURE = 16  # below, whole fits tell how new rows score; open_set.py
WHOLE_FOLDS, ENOUGH_UNSEEN = 5, 300  # of these, and rows left out by some of them; open_set.py
TRIAL_ITERATIONS = 10  # of L-BFGS; tables.py
PROMISING = 1.2  # times the lowest loss in the first fold: candidates beyond are out; tables.py
FINALISTS = 2  # capacities for which several ridges are tried; tables.py
SIMPLER = 0.01  # of the loss that each step away from the simplest candidate costs; tables.py
MIN_JUDGED_LIKELIHOOD = 1e-3  # of a label: one row must not decide alone; tables.py
DENOISED_FEATURES = 64  # from which on the denoised start is tried; picture.py
MEANS_PASSES = 5  # of k-means in a trial; tables.py

# Rounds: Algs. 1 to 3.
USUAL_SHARE = 0.15  # latent examples for each row, where many rows choose nothing; quality.py
MORE_SHARE = 0.3  # the same in two sets of fewer than ``MANY_ROWS``; quality.py
MORE_SETS = 2  # of latent examples, where there are more passes; quality.py
USUAL_ROUNDS = 5  # of Alg. 3 before a refinement in batches; quality.py, small_tables.py
MAX_LATENT_SHARE = 0.25  # most latent examples of a class of few heavy rows; small_sets.py
START_SHIFT = 1e-4  # of the way to the mean, by which latent examples start off rows; quality.py
SETTLED_SHARE = 0.002  # Alg. 1 ends if no more of a class's rows change; passes.py
FEWEST_ANCHORS = 1_536  # that a round mines triplets for, or all latent examples; kernels.py
STEPS_PER_ANCHOR = 64  # of Alg. 2; more steps draw more anchors; kernels.py
OBJECTIVE_TRIPLETS = 10_000  # that the objective is evaluated on; convergence.py
UNSTRUCTURED_SHARE = 1e-3  # weight of structureless rows if the rounds learn a low rank; shapes.py

# Refinement.
USUAL_PASSES = 3  # over the rows; choices.py
MORE_PASSES = 6  # over many rows, which no metric suits one by one; quality.py
MANY_ROWS = 30_000  # from which on there are more passes; quality.py
ROWS_PER_FEATURE = 64  # from which on there are more passes, too; tables.py
REFINEMENT_SHARE = 0.2  # T as a multiple of the latent examples' spacing; choices.py
DISTORTION = 0.5  # of the difference of two rows, added to another of their class; choices.py
MAP_RANK = 3  # metrics of at most this rank are maps, reduced after the rounds; shapes.py
MAP_SHARE = 1.0  # T of a map, in which classes overlap; shapes.py
WRONG_LABELS_SHARE = 0.6  # T if labels may be wrong; doubts.py
WRONG_LABELS_EXPONENT = 0.7  # of P(y | x), which weights a row's gradient then; doubts.py
RIDGE = 0.5  # of the mean spread within classes, added when the rank is reduced; shapes.py
OVERALL_SHARE = 1e-2  # weight of the overall spread beside that of class means; shapes.py
BATCH, SMALLEST_BATCH = 256, 16  # most and fewest rows of a step; choices.py
BATCHES = 20  # of few rows; choices.py
FEWEST_STEPS = 220  # of a pass, which goes over few rows several times; refinement.py
MOST_STEPS = 1_000  # of a pass, which visits a part of very many rows; refinement.py
FACTOR_RATE = 1e-2  # first step of the factor, relative to its norm; choices.py
POINT_RATE = 2e-2  # first step of a point's numbers, relative to the factor's stretch; choices.py
USUAL_ROWS = 10  # rows per latent example from which on points make longer steps; choices.py
FIRST_DECAY, SECOND_DECAY = 0.9, 0.999  # Adam's; choices.py
MIN_GRADIENT_SHARE = 1e-3  # of the usual: points with smaller gradients move less; fuzz.py
CERTAIN_LIKELIHOOD = 0.99  # of a label: rows this certain take no part in a pass; refinement.py
NEAR = 32  # latent examples of a set near a row; the weight of others is negligible; refinement.py
LISTED = 128  # latent examples near a latent example, searched for its rows; kernels.py
MAX_COMPARED = 8_192  # latent examples that are compared all with all to list near ones; kernels.py
LISTING_AXES = 96  # principal axes that the lists are made from; kernels.py
PREIMAGE_RIDGE = 1e-4  # of the mean eigenvalue, when points are mapped back; quality.py
STAND_INS = 300  # latent examples nearest to a new class that stand in for their rows; living.py
STAND_IN_SHARE = 0.07  # of exp(D²/T) of known rows, a stand-in's weight; living.py
MOST_STANDING = 25.0  # the most of that; living.py
ADDED_ITERATIONS = 3  # of L-BFGS for each pass of the refinement, of a new class; living.py
FEWEST_REFINED_ROWS = 20  # of a new class; living.py
LEAST_AWAY = 2.0  # D²/T of known rows, or latent examples of new classes stay; living.py
MAX_REFINED_DISTANCES = 2**23  # rows times latent examples of a new class; living.py
JUDGED_ROWS = 2_048  # rows of the sample that states are judged on; quality.py

# Votes.
ALL_VOTE = 1_024  # references in a kernel vote that was learned with all of them; tables.py
LEAST_SHARE = 2.0**-23  # of a vote, for all references that are too far to count; tables.py
KERNEL_NEIGHBORS = 40  # references in a kernel vote; fewer raise the log-loss; quality.py
TEMPERATURE_RANK = 4  # T is a multiple of the distance² to the nearest one of this rank; quality.py
TEMPERATURE_SHARE = 0.14  # the multiple if no rows are held out; quality.py
TEMPERATURE_SAMPLE = 512  # references whose spacing is measured; latency.py
TEMPERATURE_GRID = 2.0 ** np.arange(-7, 1)  # multiples tried on held-out rows; quality.py

# Rows of unknown classes.
KEPT_SHARE, KEPT_ROWS = 0.05, 512  # kept out of the refinement, of all rows; open_set.py
FEWEST_KEPT = 256  # or none are kept out, and short fits say how new rows score; open_set.py
FEWEST_KEPT_ALONE = 100  # the same, if there were no short fits; open_set.py
LEAST_CENTRE = 2.0  # the usual distance² to the centre, of that to the nearest; open_set.py

# Speed and memory.
BLOCK_BYTES = 8 * 2**20  # of a block of distances: enough for GEMM, and fits the cache; kernels.py
TILE_ROWS = 4096  # references compared at a time; kernels.py
MANY_VOTERS = 64  # from which on a vote of all references is not sorted; latency.py
VOTING_BYTES = 64 * 2**20  # of the neighbours that vote on rows at a time; memory.py
MEASURED_BYTES = 2**19  # of rows whose differences are computed at a time; latency.py
MAX_ARGMIN = 15  # up to this k, k passes of argmin are fastest; kernels.py
GROUPS_PER_NEIGHBOR = 8  # of entries, whose minima bound the k smallest; latency.py
MANY_CANDIDATES = 16  # beyond the k nearest, from which on float64 is worth it; latency.py
FEW_CLASSES = 1_024  # up to this many, a total for each class is cheaper; imagenet_scale.py
STEPS_PER_BLOCK = 128  # of Alg. 2; kernels.py
CLASS_BLOCK_BYTES = 32 * 2**20  # of a class's rows in memory at a time, per thread; out_of_core.py
KEPT_SCATTER_BYTES = 2**30  # of all classes' scatters kept between rounds; memory.py
SUMMED_ROWS = 4096  # rows summed in their own dtype before float64; kernels.py
CHUNKS = 4  # parts of a batch, one for each thread; mnist_fit.py
CHUNKED_NUMBERS = 2**19  # rows times features of a batch that is divided; mnist_fit.py
CACHED_BYTES = 2**18  # of points moved at a time; kernels.py

# Rivals.
SEARCH_EVERY, FIRST_DESCENT = 20, 5  # LMNN's iterations between searches; the first; lmnn_fit.py
MARGIN_SHARE = 0.1  # LMNN's margin, of the targets' mean distance²: sets only the unit; lmnn_fit.py
BALANCE_FLOOR = 0.03  # added to the scatter of LMNN's targets in every direction; lmnn_fit.py
KEPT_SEARCHES = 2  # times ``max_impostors`` that a row keeps between LMNN's descents; lmnn_fit.py
GATHER_DIVISOR = 8  # blocks of rows that LMNN gathers are so many times smaller; lmnn_fit.py
SHARPNESS = 3.0  # HR-SGD's L: how closely its loss follows the hinge; rival_choices.py
UPDATES_AHEAD = 16  # that a bound on the least eigenvalue should last; rival_choices.py
OASIS_STEPS_PER_BLOCK = 256  # of OASIS; rival_choices.py
DRAWN_AT_ONCE = 1_000_000  # random triplets in memory; rivals.py
