"""The `cuvil` command: one file per command, one per output format; nothing is decided here that the compiler or cuvil_ide decides."""
