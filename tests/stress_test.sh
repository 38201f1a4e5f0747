#!/bin/bash
# Threads that allocate, resize, free and hand blocks to each other keep every byte: with few and
# many threads, in one generation and in many short ones. The seed of a failed run is in its output;
# TEST_SEED repeats it.
. "$(dirname "$0")/support/harness.sh"

seed=${TEST_SEED:-$((RANDOM * 32768 + RANDOM))}
echo "seed $seed"

# check_stress PROFILE CALLS THREADS GENERATIONS
check_stress() {
  seconds=300 run "$1" "$programs/stress" "$seed" "$2" "$3" "$4"
  expect "$1: $3 threads, $4 generations"
}

for profile in $(profiles); do
  check_stress "$profile" 150000 2 2
  check_stress "$profile" 30000 16 2
  check_stress "$profile" 3000 8 20
done
for profile in $(default_profiles); do
  check_stress "$profile" 600000 2 2
  check_stress "$profile" 100000 16 2
done
finish
