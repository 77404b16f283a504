// SPDX-License-Identifier: Apache-2.0

package outward

import (
	"net/netip"
	"slices"
	"strings"
)

// metadataServices are addresses where clouds serve secrets to machines, besides the link-local ones that most clouds use.
var metadataServices = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"),   // AWS
	netip.MustParseAddr("fd00:ec2::23"),    // AWS, for Pods
	netip.MustParseAddr("fd20:ce::254"),    // Google Cloud
	netip.MustParseAddr("100.100.100.200"), // Alibaba Cloud
	netip.MustParseAddr("168.63.129.16"),   // Azure
	netip.MustParseAddr("192.0.0.192"),     // Oracle Cloud
}

// Blocks of addresses that package netip has no predicate for.
var (
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8") // Linux takes the first of it for loopback
	broadcast   = netip.MustParseAddr("255.255.255.255")
)

// Blocks of IPv6 addresses that embed an IPv4 address, the byte where it begins, and whether its bits are inverted.
var translated = []struct {
	block    netip.Prefix
	at       int
	inverted bool
}{
	{netip.MustParsePrefix("::/96"), 12, false},
	{netip.MustParsePrefix("64:ff9b::/96"), 12, false},
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12, false},
	{netip.MustParsePrefix("2002::/16"), 2, false},
	{netip.MustParsePrefix("2001::/32"), 4, false}, // Teredo: the server
	{netip.MustParsePrefix("2001::/32"), 12, true}, // Teredo: the client
}

// special describes an address that means the machine itself or its surroundings; empty for every other address.
func special(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	switch {
	case addr.IsUnspecified(), thisNetwork.Contains(addr), addr.IsLoopback():
		return "a loopback address"
	case addr.IsLinkLocalUnicast():
		return "a link-local address"
	case addr.IsMulticast(), addr == broadcast:
		return "a multicast address"
	case slices.Contains(metadataServices, addr):
		return "the address of a metadata service"
	}
	for _, t := range translated {
		if !addr.Is6() || !t.block.Contains(addr) {
			continue
		}
		bytes := addr.As16()
		embedded := [4]byte(bytes[t.at : t.at+4])
		for i := range embedded {
			if t.inverted {
				embedded[i] = ^embedded[i]
			}
		}
		if what := special(netip.AddrFrom4(embedded)); what != "" {
			return what
		}
	}
	return ""
}

// localName describes a name that can only mean the machine itself; empty for every other name.
func localName(host string) string {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return "a name of the machine itself"
	}
	return ""
}
