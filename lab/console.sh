#!/bin/bash
# console.sh: two hosts with three VMs each, h1 with NAT guests, h2 with guests
# bridged past it; bin/virdeck on them; everything down afterwards (LAB_KEEP=1
# leaves it up). While it runs, faults come from another terminal: hosts/ctl.sh.
# console.sh --config: only print the configuration for a lab that is up.
set -uo pipefail
. "$(dirname "$0")/hosts/lib.sh"
virdeck=$lab/../bin/virdeck
nat="nat-1 nat-2 nat-3" lan="lan-1 lan-2 lan-3"

config() {
  cat <<C
[fleet]
name = "lab"
state_dir = "$state/console"

[health]
[[health.target]]
url = "http://10.77.0.1:8000/ip"
echo_ip = true

[[host]]
name = "h1"
uri = "qemu:///system?socket=$state/h1/run/libvirt-sock"

[[host]]
name = "h2"
uri = "qemu+tcp://10.77.2.2/system"
C
  for g in $nat $lan; do
    case $g in nat-*) h=h1;; *) h=h2;; esac
    printf '\n[[proxy]]\nname = "%s"\nhost = "%s"\nport = 3128\n' "$g" "$h"
  done
}
[ "${1:-}" = --config ] && { config; exit 0; }

[ "$(id -u)" = 0 ] || die "run as root"
[ -x "$virdeck" ] || die "$virdeck is missing: make build"
"$lab/install.sh" || exit 1
trap '[ -n "${LAB_KEEP:-}" ] || { echo "taking the lab down"; "$lab/hosts/down.sh"; }' EXIT
trap 'exit 130' INT TERM HUP
"$lab/hosts/up.sh" 2 || exit 1
echo "starting six VMs, two at a time (about half a minute)"
failed=
for g in $nat $lan; do
  case $g in nat-*) h=h1 k=nat;; *) h=h2 k=lan;; esac
  while [ "$(jobs -rp | wc -l)" -ge "${LAB_PAR:-2}" ]; do wait -n || failed=1; done
  "$lab/guest.sh" "$h" "$g" --kind "$k" &
done
while [ -n "$(jobs -rp)" ]; do wait -n || failed=1; done
[ -z "$failed" ] || warn "not every VM came up; the console will show which"
config >"$state/console.toml"
echo "faults, from another terminal: $lab/hosts/ctl.sh h2 agent lan-1 restart 8   (all: lab/README.md)"
"$virdeck" -c "$state/console.toml"
