"""Where the rounds can run other than in this process."""
