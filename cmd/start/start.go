// SPDX-License-Identifier: Apache-2.0

// Package start runs managers of controller-runtime so that they end when they are asked to.
package start

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// endTimeout is how long a manager that was asked to end while its caches are being filled may take to end by itself.
const endTimeout = time.Second

// Manager runs mgr until ctx is done. A manager of controller-runtime v0.25 whose context ends before its caches are filled never
// ends, and keeps a core busy: Manager returns nil then, without it, and the process must end. No controller and no watch has begun
// at that time.
func Manager(ctx context.Context, mgr manager.Manager) error {
	filled := make(chan struct{})
	if err := mgr.Add(afterCaches(filled)); err != nil {
		return fmt.Errorf("adding what notes that caches are filled: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	late := make(chan struct{})
	defer context.AfterFunc(ctx, func() { time.AfterFunc(endTimeout, func() { close(late) }) })()
	select {
	case err := <-ended:
		return err
	case <-filled:
		return <-ended
	case <-late:
		return nil
	}
}

// afterCaches is closed by the manager when its caches are filled, before it stands for election.
type afterCaches chan struct{}

// Start closes the channel.
func (a afterCaches) Start(context.Context) error {
	close(a)
	return nil
}

// NeedLeaderElection reports that a manager that does not lead closes it, too.
func (afterCaches) NeedLeaderElection() bool { return false }
