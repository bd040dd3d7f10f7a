// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package callhome

import (
	"net"
	"net/netip"
	"slices"
	"time"
)

// waiting is a connection that is about to say whose it is, or that nobody has asked for yet.
type waiting struct {
	net.Conn
	// from is what its address counts as, name the Machine's, once it is said.
	from, name string
	// expire closes it in time, once it is kept.
	expire *time.Timer
	// number is that of its place in a crowd.
	number int
}

// crowd are connections by what their addresses count as, of each the oldest first. Who has most makes room: one who opens many keeps out
// nobody who opens few.
type crowd struct {
	of map[string][]*waiting
	// all is how many there are, of which there may be inAll, and ofOne by one address. number is that of the last.
	all, inAll, ofOne, number int
}

func newCrowd(inAll, ofOne int) *crowd {
	return &crowd{of: map[string][]*waiting{}, inAll: inAll, ofOne: ofOne}
}

// add adds a connection, and returns the one that has to go for it, which it has removed, or nil.
func (c *crowd) add(w *waiting) *waiting {
	c.number++
	w.number = c.number
	c.of[w.from] = append(c.of[w.from], w)
	c.all++
	var goes *waiting
	switch {
	case len(c.of[w.from]) > c.ofOne:
		goes = c.of[w.from][0]
	case c.all > c.inAll:
		goes = c.oldestOfMost()
	default:
		return nil
	}
	c.remove(goes)
	return goes
}

// oldestOfMost is the oldest connection of the address that has most, of several such addresses the oldest of all.
func (c *crowd) oldestOfMost() *waiting {
	var most []*waiting
	for _, of := range c.of {
		if len(of) > len(most) || len(of) == len(most) && of[0].number < most[0].number {
			most = of
		}
	}
	return most[0]
}

// remove reports whether the connection was there.
func (c *crowd) remove(w *waiting) bool {
	at := slices.Index(c.of[w.from], w)
	if at < 0 {
		return false
	}
	c.all--
	if c.of[w.from] = slices.Delete(c.of[w.from], at, at+1); len(c.of[w.from]) == 0 {
		delete(c.of, w.from)
	}
	return true
}

// sourceOf is what an address counts as: itself, but of IPv6 the network of 64 bits, all of whose addresses one machine can have.
func sourceOf(address net.Addr) string {
	at, err := netip.ParseAddrPort(address.String())
	if err != nil {
		return address.String()
	}
	ip := at.Addr().Unmap()
	if ip.Is6() {
		if network, err := ip.Prefix(64); err == nil {
			return network.String()
		}
	}
	return ip.String()
}
