"""How much the page shows, and from when on it remarks on something."""

# Rows and labels
MAX_TEXT = 60  # characters of a label or name; longer ones are cut in the middle
MAX_OPTION = 24  # characters of a label in a box to choose from, which is narrow
MAX_SEEN = 0.5  # if more of the queries than this share are training rows, they are no test
MAX_NAMELESS = 64  # rows with more features than this, and no names for them, are no table
DOUBTFUL_SCORE = 0.05  # a label with a lower score is doubtful
MAX_DOUBTFUL = 30  # doubtful labels in the table
N_NEIGHBORS = 5  # nearest neighbours of a misclassified row

# Verdict and advice
MAX_SVC_CLASSES = 100  # with more there is no SVC: it compares every two, which takes minutes
NEARLY = 0.1  # another start whose loss is higher by at most this share is worth a try
OVERCONFIDENT = 0.03  # probabilities that exceed the accuracy by this much are worth a remark
MANY_DOUBTFUL = 0.02  # if more of the labels than this are doubtful, the fit should know
STILL_FALLING = 0.01  # a last round that lowers the loss by this share of the first: not the end
HARD_PAIR = 0.1  # a pair of classes with this share of the errors is worth a look
MIN_PAIR_ERRORS = 3  # and at least so many of them
MAX_MORE_ROWS = 20  # more test rows are advised up to this many times those there are

# Classes, confusion, calibration, mistakes
MAX_CLASSES = 1000  # in the table; if there are more, the hardest
MAX_MATRIX = 60  # classes in the matrix; if there are more, those that are confused most
MAX_PAIRS = 12  # in the table of confused pairs
NOTICEABLE = 0.01  # probabilities that are off by less are called neither too high nor too low
MAX_MISTAKES = 24  # misclassified rows
MAX_OPEN_MISTAKES = 6  # of those with tables of values, so many are seen at once
MAX_MISTAKE_VALUES = 6  # features in the table of a misclassified row

# Map and gallery
MAX_MAP_ROWS = 1000  # training rows, and tested rows; if there are more, a stratified sample
MAX_MAP_LATENTS = 2000
N_NEAREST = 3  # nearest latent examples that a point's card lists
MAX_CLOSEST = 8  # pairs of neighbouring classes in the table below the map
MAX_FITTED = 2_000  # training rows that the map of rank 2 is learned on
MAX_GALLERY = 240  # latent examples in the gallery, divided among the classes
MAX_PER_CLASS = 12
MAX_CLUSTER_ROWS = 6  # rows beside a latent example
MAX_LATENT_VALUES = 4  # values listed for a latent example where rows are not images
MAX_THUMBNAIL = 32  # pixels of a thumbnail's longer side; larger images are averaged down
MAX_PICTURE_BYTES = 4_500_000  # all thumbnails before compression; base64 adds a third

# Metric and data
MAX_CANDIDATES = 12  # of those that cross-validation compared
MAX_FEATURES = 12  # in the chart of weights
MAX_DIRECTIONS = 3
MAX_LOADINGS = 5  # features listed for each direction
MAX_EIGENVALUES = 240  # drawn, evenly spaced among all of them
MAX_NAMES = 12  # names of features that are listed
