"""Transport between workers: sockets, seals, collective operations and codecs, without nets."""
