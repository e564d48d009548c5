#!/bin/sh
# record-setup.sh URI: the domains and networks for `go test -run TestRecorded -record`,
# on a libvirt daemon that has none, has just been started, and is of no other use.
set -eu
virsh() { command virsh -q -c "$uri" "$@"; }
uri=$1
dir=$(mktemp -d)
trap 'rm -r "$dir"' EXIT

network() { # NAME UUID BRIDGE ADDRESS INSIDE
	cat >"$dir/net.xml" <<-X
	<network><name>$1</name><uuid>$2</uuid><forward mode='nat'/><bridge name='$3'/>
	<ip address='$4' netmask='255.255.255.0'>$5</ip></network>
	X
	virsh net-define "$dir/net.xml"
	virsh net-start "$1"
}
domain() { # NAME LAST-BYTE DEVICES
	cat >"$dir/dom.xml" <<-X
	<domain type='qemu'><name>$1</name><uuid>aaaaaaaa-0000-4000-8000-0000000000$2</uuid>
	<memory unit='MiB'>32</memory><vcpu>1</vcpu>
	<os><type arch='x86_64' machine='q35'>hvm</type></os><features><acpi/></features>
	<devices><emulator>/usr/bin/qemu-system-x86_64</emulator>$3</devices></domain>
	X
	virsh define "$dir/dom.xml"
}
nic() { # MAC NETWORK: without a ROM, so that it does not ask for a lease
	echo "<interface type='network'><mac address='$1'/><source network='$2'/><model type='virtio'/><rom enabled='no'/></interface>"
}
channel="<channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0'/></channel>"

network default 11111111-2222-4333-8444-555555555555 virbr0 192.168.122.1 "<dhcp><range start='192.168.122.2' end='192.168.122.254'/></dhcp>"
network other 11111111-2222-4333-8444-666666666666 virbr1 192.168.9.1 ""
domain agent 01 "$(nic 52:54:00:00:00:01 default)$channel"
domain bare 02 ""
domain off 03 "$channel"
domain orphan 04 "$(nic 52:54:00:00:00:04 other)"
for d in agent bare orphan; do virsh start "$d"; done
virsh net-destroy other
virsh net-undefine other
