#!/bin/sh
# Says whether a year is a leap year: exits with 0 if it is one.
[ $(($1 % 4)) -eq 0 ]
