#!/bin/sh
# Plays a colleague who edits the project. It is not part of Checkrein and not confined: it runs as you do.
#
#   sh colleague.sh            edits at once
#   sh colleague.sh LOG        first waits until the output of `checkrein run` in LOG says that a review runs
set -eu
here=$(dirname "$0")

if [ $# -gt 0 ]; then
    until grep -q 'waits for a decision' "$1" 2>/dev/null; do
        sleep 0.1
    done
fi
echo 'The blog will use them, too.' >> "$here/project/NOTES.md"
