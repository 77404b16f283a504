// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net"
	"net/url"
	"strings"
	"sync"
)

// wire is a connection to an API server that can be cut.
type wire struct {
	url, far string

	mu   sync.Mutex
	cut  bool
	open map[net.Conn]bool
}

// stretch listens for as long as the process lives.
func stretch(host string) (*wire, error) {
	u, err := url.Parse(host)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	port := listener.Addr().String()[strings.LastIndex(listener.Addr().String(), ":"):]
	w := &wire{url: "https://" + u.Hostname() + port, far: u.Host, open: map[net.Conn]bool{}}
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			go w.carry(near)
		}
	}()
	return w, nil
}

// carry copies both ways until either side ends.
func (w *wire) carry(near net.Conn) {
	defer near.Close()
	w.mu.Lock()
	to := w.far
	w.mu.Unlock()
	far, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer far.Close()
	w.mu.Lock()
	if w.cut {
		w.mu.Unlock()
		return
	}
	w.open[near], w.open[far] = true, true
	w.mu.Unlock()
	done := make(chan struct{}, 2)
	pump := func(to, from net.Conn) {
		buffer := make([]byte, 32*1024)
		for {
			n, err := from.Read(buffer)
			if n > 0 {
				if _, err := to.Write(buffer[:n]); err != nil {
					break
				}
			}
			if err != nil {
				break
			}
		}
		done <- struct{}{}
	}
	go pump(far, near)
	go pump(near, far)
	<-done
	w.mu.Lock()
	delete(w.open, near)
	delete(w.open, far)
	w.mu.Unlock()
}

// Cut ends all connections and takes no more.
func (w *wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
	for c := range w.open {
		c.Close()
	}
}

// Lead makes the wire end elsewhere, ends all connections, and returns where it ended before.
func (w *wire) Lead(far string) (before string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before, w.far = w.far, far
	for c := range w.open {
		c.Close()
	}
	return before
}

// Mend takes connections again.
func (w *wire) Mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = false
}
