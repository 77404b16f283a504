// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/reconciler/fleet/report"
)

// Objects that are not the Application's are in no cache. They are read again after pollFirst, or later where they are many. While nothing
// changes the interval doubles, up to pollLast.
const (
	pollFirst = 4 * time.Second
	pollEach  = 100 * time.Millisecond
	pollLast  = time.Minute
)

// poll is the interval of one target in one cluster.
type poll struct {
	// seen identifies the target and the objects as they were read last.
	seen     [sha256.Size]byte
	interval time.Duration
	due      time.Time
}

// polls are the intervals of all targets. They are empty when the process starts. The zero value is usable; it is safe for concurrent use.
type polls struct {
	mu  sync.Mutex
	all map[types.NamespacedName]map[string]poll
}

// next returns when to read n objects again. A pass that something else caused before that neither extends nor shortens the interval.
func (l *polls) next(target types.NamespacedName, cluster string, seen [sha256.Size]byte, n int, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := max(pollFirst, time.Duration(n)*pollEach)
	known, found := l.all[target][cluster]
	switch {
	case !found || known.seen != seen:
		known = poll{seen, first, now.Add(first)}
	case !now.Before(known.due):
		known.interval = min(2*known.interval, max(pollLast, first))
		known.due = now.Add(known.interval)
	}
	if l.all == nil {
		l.all = map[types.NamespacedName]map[string]poll{}
	}
	if l.all[target] == nil {
		l.all[target] = map[string]poll{}
	}
	l.all[target][cluster] = known
	return known.due.Sub(now)
}

// end drops the interval of a target in a cluster.
func (l *polls) end(target types.NamespacedName, cluster string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all[target], cluster)
}

// forget drops all of a target.
func (l *polls) forget(target types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, target)
}

// pollForeign requests another pass for objects that are not the Application's.
func (p *pass) pollForeign(foreign []*item) {
	target := client.ObjectKeyFromObject(p.Target)
	if len(foreign) == 0 {
		p.worker.polls.end(target, p.Name)
		return
	}
	sum := sha256.New()
	fmt.Fprintln(sum, p.Target.UID, p.Target.Generation, p.Cluster.Session())
	for _, s := range foreign {
		fmt.Fprintln(sum, s.want.key(), s.want.Digest, s.action, s.whose, s.maker, s.failed != nil)
		if s.live != nil {
			fmt.Fprintln(sum, s.live.UID, s.live.ResourceVersion)
		}
	}
	next := p.worker.polls.next(target, p.Name, [sha256.Size]byte(sum.Sum(nil)), len(foreign), p.now)
	p.out.Later = report.Sooner(p.out.Later, next)
}
