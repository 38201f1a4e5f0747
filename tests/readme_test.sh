#!/bin/bash
# README.md and docs/ against the program: tables are what the program prints, names exist, examples
# are valid, links lead somewhere.
#
# Generated parts stand between `<!-- generated: NAME. ... -->` and `<!-- end -->`; generate_NAME
# below makes them. `tests/readme_test.sh --write` puts the present ones into README.md.
. "$(dirname "$0")/support/harness.sh"
root=$(dirname "$(dirname "$(realpath "$0")")")
readme=$root/README.md
documents=("$readme" "$root"/docs/*.md)
cli=$(realpath "$command_line")

# ---- Generated parts -----------------------------------------------------------------------------

generate_profiles() {
  "$cli" profiles --json | python3 -c '
import json, sys
print("| Profile | Use | What it trades | What it sets |\n|---|---|---|---|")
for p in json.load(sys.stdin)["profiles"]:
    settings = ", ".join("`%s=%s`" % s for s in p["settings"].items()) or "the defaults"
    print("| `%s` | %s | %s | %s |" % (p["name"], p["summary"], p["trades"], settings))
'
}

generate_options() { "$cli" config reference; }

# The names, units and meanings of a real report.
generate_report() {
  printf '| Name | Unit | Meaning |\n|---|---|---|\n'
  real_report | awk '
    /^(now|since the start)$/ { part = $0; print "| **" $0 "** | | |"; next }
    /^[^ ]/ { part = "" }
    part {
      meaning = $0
      sub(/^ *[^ ]+ +[^ ]+ +[^ ]+ +/, "", meaning)
      sub(/^[0-9.]+ [KMGT]iB: /, "", meaning)
      print "| `" $1 "` | " $3 " | " meaning " |"
    }'
}

real_report() { HAKOZUNA_STATS=text LD_PRELOAD=$library /bin/true 2>&1; }

generated_names() { sed -n 's/^<!-- generated: \([a-z]*\)\..*/\1/p' "$readme"; }

# What README.md has in a generated part.
present() { awk -v start="<!-- generated: $1." 'index($0, start) == 1 { on = 1; next }
  /^<!-- end -->$/ { on = 0 } on' "$readme"; }

write_generated() {
  local name
  for name in $(generated_names); do
    "generate_$name" > "$work/part"
    awk -v start="<!-- generated: $name." -v part="$work/part" '
      /^<!-- end -->$/ { on = 0 }
      !on
      index($0, start) == 1 { on = 1; while ((getline line < part) > 0) print line }
    ' "$readme" > "$work/readme" && cp "$work/readme" "$readme"
  done
}

# same WHAT: $work/expected and $work/out are equal and not empty.
same() {
  if [ ! -s "$work/expected" ]; then
    fail "$1: the program printed nothing"
  elif diff "$work/expected" "$work/out" > "$work/err"; then
    pass
  else
    fail "$1"
  fi
}

check_generated() {
  local name
  for name in profiles options report; do
    ran="part \"$name\" of README.md (tests/readme_test.sh --write renews it)"
    "generate_$name" > "$work/expected" 2> "$work/err"
    present "$name" > "$work/out"
    same "README.md differs from what the program prints"
  done
}

# The names of a text report, in order.
report_names() { awk '/^[^ ]/ { on = /^(options|now|since the start)$/; next } on { print $1 }'; }

check_sample() {
  ran="the sample report of README.md"
  real_report | report_names > "$work/expected"
  awk '/^hakozuna [0-9.]+, commit/ { on = 1 } /^```/ { on = 0 } on' "$readme" | report_names \
    > "$work/out"
  same "its names are not those of a report"
}

# ---- Names ---------------------------------------------------------------------------------------

# A variable that the library does not know is told on stderr.
check_variables() {
  local variable variables
  variables=$(grep -o 'HAKOZUNA_[A-Z_]*' "$readme" | sort -u)
  for variable in $variables; do
    run none "$variable=off" "$cli" config show
    if grep -q 'there is no variable' "$work/err"; then
      fail "README.md names $variable, which does not exist"
    else
      pass
    fi
  done
}

# `section.key`, for each section that has options.
check_options() {
  local sections option
  "$cli" config reference | sed -n 's/^| `\([a-z0-9]*\.[a-z0-9_]*\)`.*/\1/p' | sort -u \
    > "$work/known"
  sections=$(cut -d. -f1 "$work/known" | sort -u | paste -s -d '|')
  grep -h -o -E "\`($sections)\.[a-z_0-9]+" "${documents[@]}" | tr -d '`' | sort -u > "$work/named"
  ran="option names of the documents"
  [ -s "$work/named" ] || fail "no option is named at all"
  while read -r option; do
    case $option in *.h | *.c) continue ;; esac
    ran="$cli config reference"
    if grep -q -x -F "$option" "$work/known"; then pass; else fail "there is no option $option"; fi
  done < "$work/named"
}

check_profile_names() {
  local name
  for name in $(grep -h -o -E 'hz[0-9]-[a-z0-9]+(-[a-z0-9]+)*' "${documents[@]}" | sort -u); do
    [ "$name" != hz3-fsat ] || continue # the documents' example of a mistake
    run none "$cli" profiles "$name"
    expect "the documents name the profile $name"
  done
}

# `./hakozuna COMMAND` and `hakozuna COMMAND` in code.
check_commands() {
  local command
  for command in $(grep -h -o -E '(`|\./)hakozuna [a-z]+' "${documents[@]}" | awk '{ print $NF }' |
    sort -u); do
    case $command in
      build | test) run none grep -q "^  $command)" "$root/hakozuna" ;;
      *) run none "$cli" "$command" --help ;;
    esac
    expect "the documents name the command $command"
  done
}

# ---- Examples and links --------------------------------------------------------------------------

check_ini_examples() {
  local file count
  awk -v folder="$work" '/^```ini$/ { on = 1; n++; next } /^```$/ { on = 0 }
    on { print > (folder "/example" n ".ini") }' "${documents[@]}"
  count=0
  for file in "$work"/example*.ini; do
    [ -e "$file" ] || continue
    count=$((count + 1))
    run none "$cli" config check "$file"
    expect "example $count of a configuration file"
  done
  ran="examples of configuration files"
  [ "$count" -gt 0 ] || fail "README.md has none"
}

# As GitHub makes them: lower case, spaces to dashes, other signs left out.
anchors_of() {
  sed -n 's/^#\+ //p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

check_links() {
  local document target file anchor
  for document in "${documents[@]}"; do
    while read -r target; do
      case $target in http*) continue ;; esac
      file=$document anchor=
      case $target in
        \#*) anchor=${target#\#} ;;
        *\#*) anchor=${target#*\#} file=$(dirname "$document")/${target%%\#*} ;;
        *) file=$(dirname "$document")/$target ;;
      esac
      ran="the link $target of ${document#"$root/"}"
      if [ ! -e "$file" ]; then
        fail "there is no such file"
      elif [ -n "$anchor" ] && ! anchors_of "$file" | grep -q -x -F -e "$anchor"; then
        fail "there is no such heading"
      else
        pass
      fi
    done < <(grep -o -E '\]\([^)]+\)' "$document" | sed 's/^](//; s/)$//')
  done
}

# `folder/file` in code: a file of the repository.
check_paths() {
  local path folders='bench|config|core|dispatch|docs|lines|stats|tests|tools'
  for path in $(grep -h -o -E "\`($folders)/[A-Za-z0-9_./-]+" "${documents[@]}" | tr -d '`' |
    sort -u); do
    ran="the path $path of the documents"
    if [ -e "$root/${path%.}" ]; then pass; else fail "there is no such file"; fi
  done
}

if [ "${1:-}" = --write ]; then
  write_generated
  exit
fi
: > "$work/out" > "$work/err"
check_generated
check_sample
check_variables
check_options
check_profile_names
check_commands
check_ini_examples
check_links
check_paths
finish
