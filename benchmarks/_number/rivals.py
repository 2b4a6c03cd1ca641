"""x"""


def print_table(*a):
    pass
