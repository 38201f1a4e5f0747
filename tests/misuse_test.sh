#!/bin/bash
# Bad frees are found as the README's table says: one message of the right kind and a backtrace,
# then SIGABRT; with on_misuse = report the program goes on and each call site is told once; with
# ignore nothing is said.
. "$(dirname "$0")/support/harness.sh"

# A row: the program (misuse_...), its arguments, then one cell per line of allocators, per profile
# that differs from its line, and per line with its option `verify` (hz3+verify).
#   KIND        found in the very call
#   KIND-late   found at the latest when the thread ends or malloc_trim runs
#   foreign     also where a large block's memory was given back since: nothing is known
#   legal       no misuse: nothing may be said
#   =           as the profile's line
#   -           not tried: the line may well have a block there
expectations() {
  cat <<'TABLE'
program  arguments           hz3           hz3-lowmem hz3+verify hz4           hz4-rss hz4+verify hz5      hz5-large128-rss  hz6      hz6-percpu hz6-strict hz6-rss
foreign  stack               foreign       =          =          foreign       =       =          foreign  =                 foreign  =          =          =
foreign  static              foreign       =          =          foreign       =       =          foreign  =                 foreign  =          =          =
foreign  mapped              foreign       =          =          foreign       =       =          foreign  =                 foreign  =          =          =
foreign  libc                foreign       =          =          foreign       =       =          foreign  =                 foreign  =          =          =
foreign  neighbour           foreign       =          =          foreign       =       =          foreign  =                 foreign  =          =          =
foreign  head                -             =          =          foreign       =       =          -        =                 -        =          =          =
double   now,small           double-late   =          double     double-late   =       double     double   =                 double   =          =          =
double   later,small         double-late   =          double     double-late   =       double     double   =                 double   =          =          =
double   many,small          double-late   =          double     double-late   =       double     double   =                 double   =          =          =
double   threads,small       double-late   =          double     double-late   =       double     double   =                 double   =          =          =
double   exit,small          double-late   =          double     double-late   =       double     double   =                 double   =          =          =
double   now,page            double-late   =          double     double-late   =       double     double   =                 double   =          =          =
double   many,page           double-late   =          double     double-late   =       double     double   =                 double   =          =          =
double   exit,page           double-late   =          double     double-late   =       double     double   =                 double   =          =          =
double   now,run             double        =          =          double        =       =          double   =                 double   =          =          =
double   later,run           double        =          =          double        =       =          double   =                 double   =          =          =
double   many,run            double        =          =          double        =       =          double   =                 double   =          =          =
double   threads,run         double        =          =          double        =       =          double   =                 double   =          =          =
double   exit,run            double        =          =          double        =       =          double   =                 double   =          =          =
double   now,large           double        foreign    =          double        foreign =          double   foreign           double   =          =          foreign
double   later,large         double        foreign    =          double        foreign =          double   foreign           double   =          =          foreign
double   threads,large       double        foreign    =          double        foreign =          double   foreign           double   =          =          foreign
interior owner,small,16      interior-late =          interior   interior-late =       interior   interior =                 interior =          =          =
interior owner,small,8       interior-late =          interior   interior-late =       interior   interior =                 interior =          =          =
interior owner,page,1024     interior-late =          interior   interior-late =       interior   interior =                 interior =          =          =
interior thread,small,16     interior-late =          interior   interior-late =       interior   interior =                 interior =          =          =
interior thread,small,1      interior-late =          interior   interior-late =       interior   interior =                 interior =          =          =
interior thread,page,1024    interior-late =          interior   interior-late =       interior   interior =                 interior =          =          =
interior owner,run,16        interior      =          =          interior      =       =          interior =                 interior =          =          =
interior owner,run,65536     interior      =          =          interior      =       =          interior =                 interior =          =          =
interior thread,run,4096     interior      =          =          interior      =       =          interior =                 interior =          =          =
interior owner,large,4096    interior      =          =          interior      =       =          interior =                 interior =          =          =
interior owner,large,5000000 interior      =          =          interior      =       =          interior =                 interior =          =          =
query    realloc,stack       foreign       =          =          foreign       =       =          foreign  =                 foreign  =          =          =
query    realloc,interior    interior      =          =          interior      =       =          interior =                 interior =          =          =
query    realloc,freed       double        =          =          double        =       =          double   =                 double   =          =          =
query    usable,stack        foreign       =          =          foreign       =       =          foreign  =                 foreign  =          =          =
query    usable,interior     interior      =          =          interior      =       =          interior =                 interior =          =          =
query    usable,freed        double        =          =          double        =       =          double   =                 double   =          =          =
none     -                   legal         =          =          legal         =       =          legal    =                 legal    =          =          =
TABLE
}

messages() { grep -c -E '^hakozuna: (foreign|interior|double) free of ' "$work/err"; }
messages_of() { grep -c -E "^hakozuna: $1 free of (0x[0-9a-f]+|\(nil\)):? " "$work/err"; }
frames() { grep -c -E '^hakozuna:  +#[0-9]+ ' "$work/err"; }

# abort: dies by SIGABRT after one message of this kind, with a frame of the program in the trace.
expect_abort() {
  local what=$1 kind=$2 late=$3
  if [ "$status" -ne 134 ]; then
    fail "$what: exit code $status, expected 134 (SIGABRT)"
  elif [ "$(messages)" -ne 1 ] || [ "$(messages_of "$kind")" -ne 1 ]; then
    fail "$what: $(messages) messages, $(messages_of "$kind") of them '$kind free', expected 1"
  elif [ "$(frames)" -lt 2 ] || ! grep -q -E "#[0-9]+ .*$program" "$work/err"; then
    fail "$what: no backtrace through $program"
  elif [ -z "$late" ] && grep -q survived "$work/out"; then
    fail "$what: the bad call returned, expected the very call to stop the program"
  else
    pass
  fi
}

# report and ignore: the program ends as if nothing had happened.
expect_survival() {
  local what=$1 kind=$2 count=$3
  if [ "$status" -ne 0 ] || ! grep -q flushed "$work/out"; then
    fail "$what: exit code $status, expected the program to end well"
  elif [ "$(messages)" -ne "$count" ] || [ "$(messages_of "$kind")" -ne "$count" ]; then
    fail "$what: $(messages) messages, $(messages_of "$kind") of them '$kind free', expected $count"
  else
    pass
  fi
}

# The settings that a column stands for beyond its profile.
settings_of() {
  case $1 in
    *+verify) echo "HAKOZUNA_OPTIONS=${1%+verify}.verify=on" ;;
    *) echo HAKOZUNA_OPTIONS= ;;
  esac
}

check_row() {
  local column=$1 program=misuse_$2 arguments=${3//,/ } cell=$4
  local profile=${column%+verify} setting kind=${cell%-late} late=
  [ "$cell" != - ] || return
  [ "$arguments" != - ] || arguments=
  [ "$kind" = "$cell" ] || late=late
  setting=$(settings_of "$column")
  # shellcheck disable=SC2086 # the arguments are words
  run "$profile" "$setting" "$programs/$program" $arguments
  if [ "$cell" = legal ]; then
    expect "$column: $program"
    return
  fi
  expect_abort "$column: $program $arguments" "$kind" "$late"
  # shellcheck disable=SC2086
  run "$profile" "$setting" HAKOZUNA_ON_MISUSE=report "$programs/$program" $arguments
  expect_survival "$column, report: $program $arguments" "$kind" 1
  # shellcheck disable=SC2086
  run "$profile" "$setting" HAKOZUNA_ON_MISUSE=ignore "$programs/$program" $arguments
  expect_survival "$column, ignore: $program $arguments" "$kind" 0
}

# The place of the column with this heading, or nothing.
column_of() {
  local -a headings
  local i
  read -r -a headings < <(expectations)
  for i in "${!headings[@]}"; do
    if [ "${headings[i]}" = "$1" ]; then echo "$i"; fi
  done
}

# check_column COLUMN: a profile, or a line's name with "+verify".
check_column() {
  local column=$1 line=${1%%[-+]*} own general cell
  local -a row
  own=$(column_of "$column")
  general=$(column_of "$line")
  if [ -z "$general" ]; then
    fail "$line has no column in the table of this test: add one"
    return
  fi
  while read -r -a row; do
    cell=${row[${own:-$general}]}
    [ "$cell" != = ] || cell=${row[general]}
    check_row "$column" "${row[0]}" "${row[1]}" "$cell"
  done < <(expectations | tail -n +2)
}

check_call_sites() {
  local profile=$1
  run "$profile" HAKOZUNA_ON_MISUSE=report "$programs/misuse_foreign" stack 5
  expect_survival "$profile: five bad frees by one call are told once" foreign 1
  run "$profile" HAKOZUNA_ON_MISUSE=report "$programs/misuse_foreign" sites
  expect_survival "$profile: bad frees by two calls are told twice" foreign 2
}

ran="the table"
: > "$work/out" > "$work/err"
for profile in $(profiles); do
  check_column "$profile"
  check_call_sites "$profile"
done
for column in $(expectations | head -n 1); do
  case $column in *+verify) check_column "$column" ;; esac
done
finish
