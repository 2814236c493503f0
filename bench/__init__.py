"""How fast is it? Ratios of times and memory against the best peers, measured in one run on one machine.

``python -m bench`` prints them and writes ``reports/bench/``. A ratio travels from machine to machine better than
seconds do. The peers that only this room uses are development dependencies.

``python -m bench.bits`` shows which steps give the same bits on other processors, and what the pins cost.
"""
