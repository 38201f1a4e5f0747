"""Stands in for rules_cc under Bazel 4: forwards to the rules that are built in there.

The copy that Debian packages does not load in its own Bazel. The last two names are asked for by
Bazel's built-in packages when they load; nothing here builds with them.
"""

cc_binary = native.cc_binary
cc_import = native.cc_import
cc_library = native.cc_library
cc_test = native.cc_test
cc_toolchain = native.cc_toolchain
cc_toolchain_suite = native.cc_toolchain_suite

def cc_flags_supplier(name, **_kwargs):
    native.filegroup(name = name)

def compiler_flag(name, **_kwargs):
    native.filegroup(name = name)
