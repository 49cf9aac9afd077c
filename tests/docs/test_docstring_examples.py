"""Execute the examples in docstrings: each must print the output shown below it."""

import doctest
import importlib
import pkgutil

import ratings_ledger

# importing this runs the program
LEFT_OUT = ("__main__",)


def list_modules() -> list[str]:
    """Return the names of all modules of the program."""
    modules = pkgutil.walk_packages(ratings_ledger.__path__, "ratings_ledger.")
    return [module.name for module in modules if not module.name.endswith(LEFT_OUT)]


def test_examples_give_what_they_say() -> None:
    """Every docstring example prints the output shown below it, and more than 100 examples are found."""
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner(verbose=False)
    attempted, reports = 0, list[str]()
    for name in list_modules():
        module = importlib.import_module(name)
        for test in finder.find(module, name):
            if test.examples:
                result = runner.run(test, out=reports.append)
                attempted += result.attempted
    assert reports == []
    assert attempted > 100
