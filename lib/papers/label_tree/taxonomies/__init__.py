"""Notebook 51: label trees and what is measured on them (sections 3.1, 3.5, 4.1 and 4.4), and the published tables."""
