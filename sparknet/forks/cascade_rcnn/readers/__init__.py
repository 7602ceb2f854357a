"""What the layers of this family read."""
