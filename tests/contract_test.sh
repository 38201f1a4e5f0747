#!/bin/bash
# The allocation functions of C and the operators of C++ behave under every profile as the man
# pages, the standards and glibc 2.36 say; and the tests themselves hold for glibc.
. "$(dirname "$0")/support/harness.sh"

# The program's own list of failures, in place of its last lines.
show_failed_cases() {
  grep -h -E 'FAILED|ERROR|error:|expected|: ' "$work/out" "$work/err" | head -n 40
}

check_contract() {
  local profile=$1
  shift
  run "$profile" "$@" "$programs/contract"
  expect "$profile: the functions of C"
  [ "$status" -eq 0 ] || show_failed_cases
  run "$profile" "$programs/cxx"
  expect "$profile: the operators of C++"
}

check_reports() {
  local profile=$1
  run "$profile" "$programs/tell" info
  expect "$profile: malloc_info"
  cp "$work/out" "$work/info.xml"
  run none python3 -c '
import sys, xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
assert root.tag == "malloc", "the root is <%s>, expected <malloc>" % root.tag
sizes = [int(e.get("size")) for e in root.iter("system")]
assert sizes and max(sizes) >= 30000000, "no <system> row covers 30 MB: %s" % sizes
' "$work/info.xml"
  expect "$profile: malloc_info is XML that accounts for 30 MB"
  run "$profile" "$programs/tell" stats
  if [ "$status" -eq 0 ] && grep -q -E '3[0-9][0-9.,]*' "$work/err" && [ ! -s "$work/out" ]; then
    pass
  else
    fail "$profile: malloc_stats writes to standard error alone"
  fi
}

check_contract none
check_reports none
for profile in $(profiles); do
  check_contract "$profile" CONTRACT_ALL=1
  check_reports "$profile"
done
finish
