"""Label trees, and where they are read from."""

from lib.taxonomy.reading import ROOT, from_dag, from_nested, from_paths, from_yaml
from lib.taxonomy.tree import Taxonomy

__all__ = ["ROOT", "Taxonomy", "from_dag", "from_nested", "from_paths", "from_yaml"]
