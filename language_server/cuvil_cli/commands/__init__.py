"""The commands, in the order `cuvil --help` lists them: name -> what it does. Each is a module here with two functions:

    arguments(parser)      adds the command's options to an argparse parser
    run(args) -> int       does it and returns the exit code: 0 fine, 1 findings or a failed check, 2 usage or internal

A module is imported only when its command runs, so that `cuvil lint` pays for nothing else.
"""

COMMANDS = {
    "lint": "find mistakes in tensor code, with the facts that prove them",
    "rule": "explain a rule, or list all rules",
    "compile": "compile functions to shared libraries with a C interface",
    "explain": "show kernels, costs, and why ops were or were not fused",
    "diff": "compare what two versions of a file compute",
    "validate": "everything that must hold before a release, in one verdict",
    "view": "print the payload of a panel as JSON",
    "report": "write the panels of a file as one offline HTML page",
    "studio": "open the panels in a browser",
    "lsp": "run the language server on standard input and output",
    "cache": "show or clear the cache of compiled objects and lint results",
    "doctor": "check that everything Cuvil needs is there and works",
}
