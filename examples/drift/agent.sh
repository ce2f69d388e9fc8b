#!/bin/sh
# A scripted agent. It is no model: it fixes the bug at its first attempt. What is interesting happens around it.
set -eu

sed 's/\[^a-z0-9\]/[^a-z0-9][^a-z0-9]*/' slug.sh > slug.sh.new
cat slug.sh.new > slug.sh
rm slug.sh.new
printf '{"version": 1, "claims": [{"text": "Any run of other characters becomes one dash.", "refs": ["file:slug.sh"]}]}\n' \
    > "$CHECKREIN_RESULT"
