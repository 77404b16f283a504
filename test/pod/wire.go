// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"fmt"
	"io"
	"net"
	"sync"
)

// Wire is a port of this machine whose connections lead somewhere else, byte by byte. As those of a Service, connections
// are sent to one of its endpoints when they are made, and stay there whatever becomes of the endpoint. A wire can be cut.
type Wire struct {
	// Port is that of 127.0.0.1.
	Port int

	listener net.Listener
	wg       sync.WaitGroup

	mu        sync.Mutex
	whole     *sync.Cond
	cut       bool
	closed    bool
	endpoints []string
	all       map[net.Conn]bool
	made      map[string]int // connections by endpoint
}

// NewWire listens. It leads to the first of its endpoints, of which it has none yet.
func NewWire() (*Wire, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	w := &Wire{
		Port: l.Addr().(*net.TCPAddr).Port, listener: l, all: map[net.Conn]bool{}, made: map[string]int{},
	}
	w.whole = sync.NewCond(&w.mu)
	w.wg.Go(w.accept)
	return w, nil
}

// Lead leads connections that are made from now on to the first of endpoints.
func (w *Wire) Lead(endpoints ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.endpoints = endpoints
}

// Made is how many connections were led to endpoint.
func (w *Wire) Made(endpoint string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.made[endpoint]
}

// Cut keeps all bytes, of old connections and new ones, until Mend, without any error.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
}

// Mend ends what Cut began.
func (w *Wire) Mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = false
	w.whole.Broadcast()
}

// Break ends all connections that there are.
func (w *Wire) Break() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.all {
		c.Close()
	}
}

// Close ends everything.
func (w *Wire) Close() {
	w.listener.Close()
	w.mu.Lock()
	w.closed, w.cut = true, false
	w.whole.Broadcast()
	w.mu.Unlock()
	w.Break()
	w.wg.Wait()
}

func (w *Wire) accept() {
	for {
		from, err := w.listener.Accept()
		if err != nil {
			return
		}
		w.wg.Go(func() { w.join(from) })
	}
}

// join leads one connection to an endpoint, until either side has closed it.
func (w *Wire) join(from net.Conn) {
	defer from.Close()
	if !w.hold(from) {
		return
	}
	defer w.let(from)
	endpoint := w.choose()
	to, err := net.Dial("tcp", endpoint)
	if err != nil {
		return
	}
	defer to.Close()
	if !w.hold(to) {
		return
	}
	defer w.let(to)
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		both.Go(func() {
			_, _ = io.Copy(onlyWriter{w, way[1]}, onlyReader{way[0]})
			way[0].Close()
			way[1].Close()
		})
	}
	both.Wait()
}

// choose is the endpoint of a connection that is being made.
func (w *Wire) choose() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.cut {
		w.whole.Wait()
	}
	if len(w.endpoints) == 0 {
		return "nowhere"
	}
	w.made[w.endpoints[0]]++
	return w.endpoints[0]
}

func (w *Wire) hold(c net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all[c] = true
	return !w.closed
}

func (w *Wire) let(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.all, c)
}

// onlyWriter writes while the wire is whole.
type onlyWriter struct {
	wire *Wire
	to   net.Conn
}

func (o onlyWriter) Write(p []byte) (int, error) {
	o.wire.mu.Lock()
	for o.wire.cut {
		o.wire.whole.Wait()
	}
	o.wire.mu.Unlock()
	return o.to.Write(p)
}

// onlyReader hides that its bytes could be moved inside the kernel, where they cannot be held.
type onlyReader struct{ io.Reader }
