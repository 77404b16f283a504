// SPDX-License-Identifier: Apache-2.0

// Package pipe has connections in memory, for servers and clients in a bubble of testing/synctest: there, time passes only when all wait.
package pipe

import (
	"context"
	"net"
	"sync"
)

// Listener accepts the connections of its own Dial.
type Listener struct {
	connections chan net.Conn
	closed      chan struct{}
	close       func()
}

// Listen returns a Listener. It is closed by the server that uses it.
func Listen() *Listener {
	l := &Listener{connections: make(chan net.Conn), closed: make(chan struct{})}
	l.close = sync.OnceFunc(func() { close(l.closed) })
	return l
}

// Accept waits for a connection.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.connections:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and Dial.
func (l *Listener) Close() error {
	l.close()
	return nil
}

// Addr is an address of this machine that nothing is requested at.
func (l *Listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// Dial connects, whatever the address: for http.Transport.DialContext and rest.Config.Dial.
func (l *Listener) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.connections <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
