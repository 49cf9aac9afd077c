#!/bin/sh
# Run a command every day at a time of day, in the zone TZ: every-night 03:17 ratings nightly --backup /backup
# A command that fails is reported and runs again the next night. SIGTERM ends the wait, or is passed on to the command.
set -u
if [ $# -lt 2 ] || ! date -d "2000-01-01 $1" > /dev/null 2>&1; then
    echo "usage: every-night HH:MM COMMAND [ARGUMENT ...]" >&2
    exit 2
fi
at=$1
shift
child=
trap '[ -z "$child" ] || kill -TERM "$child" 2> /dev/null; wait; exit 143' TERM INT

while :; do
    now=$(date +%s)
    # a night on which clocks change may lack the time, and then has no run
    next=$(date -d "today $at" +%s 2> /dev/null || echo 0)
    days=1
    while [ "$next" -le "$now" ]; do
        next=$(date -d "$days days $at" +%s 2> /dev/null || echo 0)
        days=$((days + 1))
    done
    sleep $((next - now)) &
    child=$!
    wait "$child"
    "$@" &
    child=$!
    wait "$child"
    status=$?
    [ "$status" -eq 0 ] || echo "every-night: $1 ended with $status" >&2
    child=
done
