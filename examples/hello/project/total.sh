#!/bin/sh
# Adds up a file of expenses: lines of `what,amount`. Prints the total.
total=0
while IFS=, read -r what amount; do
    total=$((total + amount))
done < "$1"
echo "$total"
