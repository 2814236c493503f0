"""What the notebook checks compare: what a cell prints, not how far its work has come."""


def pytest_itemcollected(item):
    """Leave standard error out of nbval's comparison: it carries progress, which a committed notebook does not keep."""
    item.parent.skip_compare += ("stderr",)
