#!/bin/bash
# The library as a file: what it needs, what it defines, how it is linked, how big it is.
. "$(dirname "$0")/support/harness.sh"

ran="on $library"
: > "$work/err"
most_text_bytes=$((256 * 1024))
most_tls_bytes=64

# check WHAT: the last command's result decides; what it printed is shown.
check() {
  if [ $? -eq 0 ]; then pass; else fail "$1"; fi
}

# The loader and libc, and nothing besides.
ldd "$library" | grep -v -E 'linux-vdso|libc\.so\.6|ld-linux' > "$work/out"
[ ! -s "$work/out" ]
check "ldd shows more than libc and the loader"

nm -D --defined-only "$library" | awk '{ print $3 }' | sort > "$work/symbols"
diff "$(dirname "$0")/data/symbols.txt" "$work/symbols" > "$work/out"
check "the exported symbols differ from tests/data/symbols.txt (< missing, > too many)"

readelf -dW "$library" > "$work/out"
grep -q -E '\(FLAGS\).*BIND_NOW|\(FLAGS_1\).*NOW' "$work/out"
check "the library is not linked with -z now"
grep -q -E '\(FLAGS_1\).*NODELETE' "$work/out"
check "the library is not linked with -z nodelete"
grep -q -E '\(FLAGS\).*STATIC_TLS' "$work/out" || ! readelf -lW "$library" | grep -q '  TLS '
check "the library's thread-local data is not of the initial-exec model"
! grep -q -E 'TEXTREL|\(RPATH\)|\(RUNPATH\)' "$work/out"
check "the library has text relocations or a search path"
grep -q -F 'Library soname: [libhakozuna.so]' "$work/out"
check "the library's soname is not libhakozuna.so"

readelf -lW "$library" > "$work/out"
tls=$(awk '$1 == "TLS" { print $6 }' "$work/out")
[ $((${tls:-0})) -le $most_tls_bytes ]
check "static thread-local data takes $((${tls:-0})) bytes, expected at most $most_tls_bytes"
text=$(awk '$1 == "LOAD" && /R E/ { print $6 }' "$work/out")
[ -n "$text" ] && [ $((text)) -le $most_text_bytes ]
check "the text takes $((${text:-0})) bytes, expected at most $most_text_bytes"
! grep -q -E 'LOAD.* RWE |GNU_STACK.* RWE ' "$work/out"
check "a segment is writable and executable"
grep -q GNU_RELRO "$work/out"
check "the library has no read-only relocations"
finish
