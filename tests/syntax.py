"""Nodes of syntax trees, as ``ast.walk`` yields them, in a quarter of its time."""

import ast
from collections.abc import Iterator


def walk(tree: ast.AST) -> list[ast.AST]:
    """The node and all below it, those nearer to it first; without the marks of loads and stores."""
    nodes = [tree]
    for node in nodes:
        nodes += below(node)
    return nodes


def below(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes just below a node, without the marks of loads and stores."""
    for value in vars(node).values():
        if type(value) is list:
            yield from (each for each in value if isinstance(each, ast.AST))
        elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
            yield value
