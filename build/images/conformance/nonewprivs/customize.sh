#!/bin/sh
set -eu
chmod u+s "$1/agnhost"
