"""Compiler and linker flags, once for every target, and the two rules that carry them.

hz_library: what goes into libhakozuna.so (and, statically, into the unit tests).
hz_program: everything else that is C of ours: the command, the benchmarks, the test programs.
Optimisation, -Werror and the sanitizers are choices of the one who builds: .bazelrc.
"""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library")

HZ_WARNINGS = ["-Wall", "-Wextra"]

HZ_COPTS = HZ_WARNINGS + [
    "-std=gnu11",
    "-D_GNU_SOURCE",  # mremap, dladdr: this is a library for Linux and glibc
]

HZ_CXX_COPTS = HZ_WARNINGS + ["-std=gnu++17"]

HZ_LIBRARY_COPTS = HZ_COPTS + [
    # What is exported says so (HZ_EXPORT); all else binds inside the library.
    "-fvisibility=hidden",
    # The compiler must not take our malloc for the one that it knows: it would fold the calls of
    # calloc's own body into calloc, and drop stores to memory that is freed next.
    "-fno-builtin-malloc",
    "-fno-builtin-calloc",
    "-fno-builtin-realloc",
    "-fno-builtin-free",
    # One load finds the thread's state; __tls_get_addr could allocate.
    "-ftls-model=initial-exec",
    # Linked with -z now, so a lazy stub would be a jump for nothing.
    "-fno-plt",
    # A guard per call is a cost that the hot path does not owe: it keeps no array on its stack.
    "-fno-stack-protector",
    "-fcf-protection=none",
    # std::bad_alloc, and whatever a new handler throws, travels through our frames.
    "-fexceptions",
    "-ffunction-sections",
    "-fdata-sections",
]

HZ_LINKOPTS = ["-Wl,--as-needed"]

HZ_SHARED_LINKOPTS = HZ_LINKOPTS + [
    "-Wl,-soname,libhakozuna.so",
    # Everything resolved at link time and at load time: no lazy lookup inside a malloc.
    "-Wl,-z,defs",
    "-Wl,-z,now",
    "-Wl,-z,relro",
    # Blocks outlive a dlclose.
    "-Wl,-z,nodelete",
    # Our constructor before all others: fork handlers registered first run last, when no library
    # can be waited for any more that holds a lock of its own and allocates.
    "-Wl,-z,initfirst",
    "-Wl,--gc-sections",
    # The unwinder and the INI parser come along and stay private.
    "-static-libgcc",
    "-Wl,--exclude-libs,libinih.a:libgcc.a:libgcc_eh.a",
]

def hz_library(name, **kwargs):
    """A part of libhakozuna.so."""
    cc_library(
        name = name,
        copts = HZ_LIBRARY_COPTS,
        linkstatic = True,
        **kwargs
    )

def hz_program(name, copts = [], linkopts = [], cxx = False, **kwargs):
    """A program, or with linkshared a library, that is no part of libhakozuna.so."""
    cc_binary(
        name = name,
        copts = (HZ_CXX_COPTS if cxx else HZ_COPTS) + copts,
        linkopts = HZ_LINKOPTS + linkopts + (["-lstdc++"] if cxx else []),
        **kwargs
    )
