// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// Service spreads the connections that it takes over replicas, in turn, as a Service of Kubernetes does. It sees bytes:
// TLS is between the API server and the replica.
type Service struct {
	// Port of 127.0.0.1 where it listens.
	Port int

	listener net.Listener
	replicas []int

	mu    sync.Mutex
	turn  int
	open  map[*passed]bool
	taken map[int]int // connections by replica
}

// passed is one connection from a client to a replica.
type passed struct {
	client, replica *net.TCPConn
	asked           atomic.Int64  // bytes from the client
	done            chan struct{} // closed when both sides have ended
}

// established is how many bytes a client has sent that has asked something: a TLS handshake takes fewer, an
// AdmissionReview more.
const established = 4 << 10

// Write passes bytes to the replica and counts them.
func (p *passed) Write(b []byte) (int, error) {
	n, err := p.replica.Write(b)
	p.asked.Add(int64(n))
	return n, err
}

// NewService starts a Service in front of what listens, or will listen, on these ports of 127.0.0.1.
func NewService(replicas ...int) (*Service, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting a service: %w", err)
	}
	s := &Service{
		Port: listener.Addr().(*net.TCPAddr).Port, listener: listener, replicas: replicas,
		open: map[*passed]bool{}, taken: map[int]int{},
	}
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go s.pass(c.(*net.TCPConn))
		}
	}()
	return s, nil
}

// Close ends the Service and its connections.
func (s *Service) Close() {
	_ = s.listener.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.open {
		_, _ = p.client.Close(), p.replica.Close()
	}
}

// Taken are the connections that each replica has been given, by its port.
func (s *Service) Taken() map[int]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := map[int]int{}
	for port, n := range s.taken {
		taken[port] = n
	}
	return taken
}

// Renew ends all connections by which something was asked, as a server that leaves does, and returns when the clients have
// seen it: they must connect again, and check a certificate again. There should be no request on its way.
func (s *Service) Renew() {
	s.mu.Lock()
	var ending []*passed
	for p := range s.open {
		if p.asked.Load() >= established {
			ending = append(ending, p)
		}
	}
	s.mu.Unlock()
	for _, p := range ending {
		_ = p.client.CloseWrite()
	}
	for _, p := range ending {
		<-p.done
	}
}

// pass connects a client with the replica whose turn it is, or with the next one that takes it.
func (s *Service) pass(client *net.TCPConn) {
	defer client.Close()
	replica, err := s.connect()
	if err != nil {
		return
	}
	defer replica.Close()
	p := &passed{client: client, replica: replica, done: make(chan struct{})}
	s.mu.Lock()
	s.open[p] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, p)
		close(p.done)
	}()
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(p, client)
		_ = replica.CloseWrite()
	})
	both.Go(func() {
		_, _ = io.Copy(client, replica)
		_ = client.CloseWrite()
	})
	both.Wait()
}

func (s *Service) connect() (*net.TCPConn, error) {
	var errs []error
	for range s.replicas {
		s.mu.Lock()
		port := s.replicas[s.turn%len(s.replicas)]
		s.turn++
		s.taken[port]++
		s.mu.Unlock()
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return c.(*net.TCPConn), nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}
