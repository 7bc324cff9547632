"""The language server: the only home of pygls and lsprotocol. Handlers fetch, ask `cuvil_ide`, and translate."""
