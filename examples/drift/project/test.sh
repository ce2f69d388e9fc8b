#!/bin/sh
# Tests slug.sh. Exits with 0 if every slug is right.
failed=0

expect() { # expect SLUG TITLE
    found=$(sh ./slug.sh "$2")
    if [ "$found" = "$1" ]; then
        echo "ok: $1"
    else
        echo "not ok: expected $1, found $found"
        failed=1
    fi
}

# Slow on purpose: a review takes time, and meanwhile the world goes on.
sleep 1
expect 'tea-time' 'Tea Time'
expect 'tea-cake' 'Tea & Cake'
expect 'tea' ' (Tea) '
exit $failed
