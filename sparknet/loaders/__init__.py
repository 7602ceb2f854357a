"""Where data comes from: databases, HDF5 files, images."""
