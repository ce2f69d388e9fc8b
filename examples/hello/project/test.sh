#!/bin/sh
# Tests total.sh. Exits with 0 if every total is right.
failed=0
file=$(mktemp) || exit 2
trap 'rm -f "$file"' EXIT

expect() { # expect TOTAL CONTENT
    printf "$2" > "$file"
    found=$(sh ./total.sh "$file")
    if [ "$found" = "$1" ]; then
        echo "ok: $1"
    else
        echo "not ok: expected $1, found $found"
        failed=1
    fi
}

expect 12 'tea,5\ncake,7\n'
expect 0 ''
expect 12 'tea,5\ncake,7'
exit $failed
