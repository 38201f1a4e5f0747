"""Stands in for rules_shell under Bazel 4, where sh_test is built in."""

sh_test = native.sh_test
