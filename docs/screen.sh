#!/bin/bash
# Draws docs/screen.png: what bin/virdeck --demo shows, after a while of its story.
# usage: docs/screen.sh [SECONDS [KEYS...]]   needs tmux
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-24}
[ $# -gt 0 ] && shift
w=${W:-120} h=${H:-36} out=${OUT:-docs/screen.png}
server=virdeck-screen-$$
tm() { tmux -L "$server" -f /dev/null "$@"; }
trap 'tm kill-server 2>/dev/null || true' EXIT
[ -x bin/virdeck ] || { echo "bin/virdeck is missing: make build" >&2; exit 1; }
tm new-session -d -x "$w" -y "$h" 'TERM=xterm-256color COLORTERM=truecolor exec bin/virdeck --demo'
sleep "$seconds"
for k in "$@"; do
	tm send-keys "$k"
	sleep 0.7
done
tm capture-pane -e -p | go run ./internal/screenshot/ansi2png -w "$w" -h "$h" -o "$out"
echo "$out"
