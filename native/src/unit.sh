#!/bin/sh
# Writes a unit of C++ that includes the given files: sh unit.sh UNIT FILES...
# A compile of each file alone takes three times the CPU, which goes into the headers that all share. So no two files
# of a unit may give one name to two things, not even in anonymous namespaces.
unit=$1
shift
printf '#include "%s"\n' "$@" > "$unit"
