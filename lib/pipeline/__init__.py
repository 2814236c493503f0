"""Running the whole house: notebooks, fingerprints of code, what a profile runs, comparison, index and plan."""
