#!/bin/sh
# Plays the person who took the task over. It edits the files in the folder that is named.
#
#   sh person.sh FOLDER
set -eu

cat > "$1/leap.sh" <<'END'
#!/bin/sh
# Says whether a year is a leap year: exits with 0 if it is one.
[ $(($1 % 400)) -eq 0 ] || { [ $(($1 % 4)) -eq 0 ] && [ $(($1 % 100)) -ne 0 ]; }
END
(cd "$1" && sh test.sh)
