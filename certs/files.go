// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"path/filepath"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// files serves the certificate in two files, read again when they change.
type files struct {
	*certwatcher.CertWatcher
	current atomic.Pointer[tls.Certificate]
}

var _ Source = &files{}

// Ready is nil: without readable files the process does not start.
func (*files) Ready(*http.Request) error { return nil }

func setupFiles(mgr manager.Manager, o Options) (Source, error) {
	watcher, err := certwatcher.New(filepath.Join(o.Dir, certKey), filepath.Join(o.Dir, keyKey))
	if err != nil {
		return nil, fmt.Errorf("reading certificate in %s: %w", o.Dir, err)
	}
	f := &files{CertWatcher: watcher}
	if c, err := watcher.GetCertificate(nil); err == nil {
		f.current.Store(c)
	}
	watcher.RegisterCallback(func(c tls.Certificate) { f.current.Store(&c) })
	if err := mgr.Add(watcher); err != nil {
		return nil, fmt.Errorf("watching certificate in %s: %w", o.Dir, err)
	}
	return f, register(o.Registry, f.ends)
}

// ends are the certificates whose end is published. The files do not contain the authority.
func (f *files) ends() (leaf, authority *x509.Certificate) {
	if c := f.current.Load(); c != nil {
		return c.Leaf, nil
	}
	return nil, nil
}
