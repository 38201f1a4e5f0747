#!/bin/bash
# Forks at any moment, from any thread: parent and child go on, and neither waits for the other's
# threads.
. "$(dirname "$0")/support/harness.sh"

check_any_moment() {
  local profile=$1
  ends_well "$profile" "forks from eight allocating threads" "$programs/forks" threads
  ends_well "$profile" "forks inside of signal handlers" "$programs/forks" signal
  ends_well "$profile" "forks among threads that use stdio" "$programs/forks" stdio
  ends_well "$profile" "vfork, posix_spawn and popen" "$programs/forks" exec
}

# Behind the library in LD_PRELOAD is before it in the loader's order of initialisation.
check_handlers() {
  local profile=$1
  ends_well "$profile" "fork handlers that were registered late" \
    "$programs/forks" atfork "$programs/libatfork.so"
  ends_well "$profile" "fork handlers that were registered early" \
    LD_PRELOAD="$programs/libatfork.so" "$programs/forks" threads
  ends_well "$profile" "a library's lock that fork handlers registered late take" \
    "$programs/forks_locked" "$programs/libatfork_lock.so"
  ends_well "$profile" "a library's lock that fork handlers registered early take" \
    LD_PRELOAD="$programs/libatfork_lock.so" "$programs/forks_locked"
}

check_orphans() {
  ends_well "$1" "children take over caches that a fork caught half-way" "$programs/forks_orphans"
}

for profile in $(extreme_profiles); do check_orphans "$profile"; done
for profile in $(default_profiles); do
  check_any_moment "$profile"
  check_handlers "$profile"
done
finish
