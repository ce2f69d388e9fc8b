#!/bin/sh
# Makes a title fit for a web address: small letters, with a dash for everything else.
printf '%s\n' "$1" | tr 'A-Z' 'a-z' | sed 's/[^a-z0-9]/-/g; s/^-*//; s/-*$//'
