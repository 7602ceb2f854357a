"""Draws layers of the sizes of published nets and holds them against float64."""
