"""The rules for what callers give: parameters, rows and labels. Checked once, at the door."""
