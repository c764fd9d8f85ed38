"""The rules for parameters, rows and labels. Input is checked once, when it is passed in."""
