// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Bounds of connections. An API server has one, and for a moment two.
const (
	maxConnections = 1500
	maxOfAddress   = 750
)

// Connections bounds the connections of a server. It never refuses a new one, it closes an old one: of the address with the
// most, the one that was opened, or got its last answer, the longest ago, preferably without a review in progress. So callers
// cannot keep the API server out by open connections, even from its address.
type Connections struct {
	clock           clock.PassiveClock
	most, ofAddress int

	mu   sync.Mutex
	open map[net.Conn]*connection
	from map[string]int
}

// connection is an open connection. Connections.mu guards its changing fields.
type connection struct {
	all     *Connections
	conn    net.Conn
	address string
	// last is when it was opened or last answered; reading counts its reviews in progress.
	last    time.Time
	reading int
}

type connectionKey struct{}

// NewConnections returns the bounds of one server.
func NewConnections(c clock.PassiveClock) *Connections {
	return &Connections{
		clock: c, most: maxConnections, ofAddress: maxOfAddress, open: map[net.Conn]*connection{}, from: map[string]int{},
	}
}

// Bound makes server keep to the bounds.
func (c *Connections) Bound(server *http.Server) {
	server.ConnContext = c.opened
	server.ConnState = func(conn net.Conn, state http.ConnState) {
		if state == http.StateClosed || state == http.StateHijacked {
			c.closed(conn)
		}
	}
}

// opened counts a connection, and closes another if there are too many.
func (c *Connections) opened(ctx context.Context, conn net.Conn) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	this := &connection{all: c, conn: conn, address: addressOf(conn.RemoteAddr().String()), last: c.clock.Now()}
	c.open[conn] = this
	c.from[this.address]++
	if c.from[this.address] > c.ofAddress {
		c.evict(this.address, this)
	} else if len(c.open) > c.most {
		c.evict(c.largest(), this)
	}
	return context.WithValue(ctx, connectionKey{}, this)
}

func (c *Connections) closed(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(conn)
}

// largest is the address with the most connections. c.mu is held.
func (c *Connections) largest() string {
	largest, most := "", 0
	for address, n := range c.from {
		if n > most {
			largest, most = address, n
		}
	}
	return largest
}

// evict closes one connection of an address, but not the new one. c.mu is held.
func (c *Connections) evict(address string, come *connection) {
	var worst *connection
	for _, this := range c.open {
		if this.address == address && this != come && (worst == nil || this.before(worst)) {
			worst = this
		}
	}
	if worst == nil {
		return
	}
	c.forget(worst.conn)
	under := worst.conn
	if secure, ok := under.(*tls.Conn); ok {
		under = secure.NetConn() // without close_notify, which could block
	}
	_ = under.Close()
}

// forget no longer counts a connection. c.mu is held.
func (c *Connections) forget(conn net.Conn) {
	this := c.open[conn]
	if this == nil {
		return
	}
	delete(c.open, conn)
	if c.from[this.address]--; c.from[this.address] == 0 {
		delete(c.from, this.address)
	}
}

// before reports whether a connection is closed before another of its address.
func (n *connection) before(other *connection) bool {
	if (n.reading > 0) != (other.reading > 0) {
		return n.reading == 0
	}
	return n.last.Before(other.last)
}

// judging counts a review in progress on the connection of ctx; answered ends it.
func judging(ctx context.Context, c clock.PassiveClock) (answered func()) {
	this, ok := ctx.Value(connectionKey{}).(*connection)
	if !ok {
		return func() {}
	}
	this.count(1, time.Time{})
	return func() { this.count(-1, c.Now()) }
}

func (n *connection) count(more int, answered time.Time) {
	n.all.mu.Lock()
	defer n.all.mu.Unlock()
	n.reading += more
	if !answered.IsZero() {
		n.last = answered
	}
}
