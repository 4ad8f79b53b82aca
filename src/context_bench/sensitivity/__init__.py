"""What the data of a run can show: where its evidence stands, and what naive controls of the same size would keep."""
