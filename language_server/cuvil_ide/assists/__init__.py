"""Editor features as plain data, one file each. None of them has seen the protocol; `Session` is how they are asked."""
