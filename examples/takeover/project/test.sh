#!/bin/sh
# Tests leap.sh. Exits with 0 if every answer is right.
failed=0

expect() { # expect yes|no YEAR
    if sh ./leap.sh "$2"; then found=yes; else found=no; fi
    if [ "$found" = "$1" ]; then
        echo "ok: $2"
    else
        echo "not ok: $2: expected $1, found $found"
        failed=1
    fi
}

expect yes 2024
expect no 2023
expect no 1900
expect yes 2000
exit $failed
