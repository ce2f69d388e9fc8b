#!/bin/sh
# A scripted agent. It is no model: it plays the part of one that gets half of the rule right, and then stays there.
set -eu

cat > leap.sh <<'END'
#!/bin/sh
# Says whether a year is a leap year: exits with 0 if it is one.
[ $(($1 % 4)) -eq 0 ] && [ $(($1 % 100)) -ne 0 ]
END
[ "$CHECKREIN_ATTEMPT" = 1 ] || echo "# Looked at again in attempt $CHECKREIN_ATTEMPT." >> leap.sh
printf '{"version": 1, "claims": [{"text": "Centuries are no leap years.", "refs": ["file:leap.sh"]}]}\n' > "$CHECKREIN_RESULT"
