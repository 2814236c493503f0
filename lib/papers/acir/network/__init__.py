"""The network of ACIR part by part (Section 3.2, Equations 6 to 11, Fig. 2)."""
