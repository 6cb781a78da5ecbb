#!/bin/sh
# What the image runs: `worker` (default), `serve`, or any other command of holdfast with its arguments.
#   HOLDFAST_STORE        where threads are, as postgres://user:password@host/database
#   HOLDFAST_PROGRAMS     the module that exports your programs (default programs.mjs)
#   HOLDFAST_HEALTH       where a worker answers probes (default :8080)
#   HOLDFAST_CONCURRENCY  threads at once in a process (default 20)
#   HOLDFAST_LEASE        how long a thread stays with a process without a sign of life (default 10s)
#   HOLDFAST_GRACE        how long steps may take to end after SIGTERM (default 25s): less than the orchestrator waits
#   HOLDFAST_TOKEN        what callers of the server must bring (needed by `serve`)
#   HOLDFAST_PORT         where the server listens (default 8787)
#   HOLDFAST_ALLOW_HOST   a host name that the server answers to, besides localhost and IP addresses
set -eu

holdfast="${HOLDFAST_BIN:-node_modules/.bin/holdfast}"
programs="${HOLDFAST_PROGRAMS:-programs.mjs}"
role="${1:-worker}"
[ "$#" -eq 0 ] || shift

# exec: the shell would keep SIGTERM to itself, and threads would wait for a lease instead of being handed over.
case "$role" in
worker)
  exec "$holdfast" worker "$programs" \
    --health "${HOLDFAST_HEALTH:-:8080}" \
    --concurrency "${HOLDFAST_CONCURRENCY:-20}" \
    --lease "${HOLDFAST_LEASE:-10s}" \
    --grace "${HOLDFAST_GRACE:-25s}" "$@"
  ;;
serve)
  # Workers run elsewhere: a server that is busy with requests should not lose leases to them.
  exec "$holdfast" serve "$programs" --no-worker --host 0.0.0.0 --port "${HOLDFAST_PORT:-8787}" \
    ${HOLDFAST_ALLOW_HOST:+--allow-host "$HOLDFAST_ALLOW_HOST"} "$@"
  ;;
*)
  exec "$holdfast" "$role" "$@"
  ;;
esac
