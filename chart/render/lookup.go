// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"fmt"
	"slices"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/render/engine"
)

const (
	// mostLookups bounds the objects and lists that one chart looks up.
	mostLookups = 100
	// mostRounds bounds how often a chart is rendered because what it found makes it look up more.
	mostRounds = 5
	// MostFound bounds what one chart finds, in bytes of memory: objects of a tenant, all of which are in memory at once.
	MostFound = 16 << 20
)

// Query is an object that a chart looks up in the namespace of its Release; all of their kind if Name is empty.
type Query struct{ APIVersion, Kind, Name string }

// String is for people.
func (q Query) String() string {
	if q.Name == "" {
		return q.Kind + " objects"
	}
	return fmt.Sprintf("%s %q", q.Kind, q.Name)
}

// Lookups are what one target's chart looks up in one cluster. While templates run, they are answered from memory alone, so that a slow
// cluster keeps no slot: what they ask for the first time is found after that, and then they run again. Other namespaces, and objects
// without one, are never asked for: a chart is rendered with Shipper's rights.
type Lookups struct {
	found map[Query]finding
	asked []Query
}

// finding is an object or a list, and its size.
type finding struct {
	object map[string]any
	size   int64
}

// in is the function lookup in a Release's namespace.
func (l *Lookups) in(own string) engine.Lookup {
	if l == nil {
		return nil
	}
	return func(apiVersion, kind, namespace, name string) (map[string]any, int64) {
		q := Query{apiVersion, kind, name}
		if namespace != own {
			return nil, 0
		}
		found, known := l.found[q]
		if !known && len(l.asked) <= mostLookups && !slices.Contains(l.asked, q) {
			l.asked = append(l.asked, q)
		}
		return found.object, found.size
	}
}

// used reports whether anything was looked up, so that the result is of one moment in one cluster.
func (l *Lookups) used() bool { return l != nil && len(l.asked)+len(l.found) > 0 }

// RenderIn is Render with what find finds in the cluster: nil for nothing, and for objects without a namespace. Without
// find, the chart finds nothing.
func (c *Chart) RenderIn(
	ctx context.Context, from *shipper.ChartValues, t Target, find func(context.Context, Query) (map[string]any, error),
) (Manifest, error) {
	if find == nil {
		return c.Render(ctx, from, t)
	}
	t.Lookups = &Lookups{found: map[Query]finding{}}
	size := int64(0)
	for range mostRounds {
		manifest, err := c.Render(ctx, from, t)
		asked := t.Lookups.asked
		if len(asked) == 0 {
			return manifest, err
		}
		t.Lookups.asked = nil
		for _, q := range asked {
			if len(t.Lookups.found) == mostLookups {
				return Manifest{}, chartError("chart %q %s: it looks up more than %d objects", c.Name(), c.Version(), mostLookups)
			}
			found, err := find(ctx, q)
			if err != nil {
				return Manifest{}, &chart.Error{Reason: shipper.ChartError, Retry: true, Cause: err,
					Message: fmt.Sprintf("chart %q %s looks up %s: %v", c.Name(), c.Version(), q, err),
					Public:  fmt.Sprintf("chart %q %s looks up an object that cannot be read now", c.Name(), c.Version())}
			}
			weight := Weigh(found)
			if size += weight; size > MostFound {
				return Manifest{}, chartError("chart %q %s: what it looks up takes more than %s", c.Name(), c.Version(), chart.Mebibytes(MostFound))
			}
			t.Lookups.found[q] = finding{found, weight}
		}
	}
	return Manifest{}, chartError("chart %q %s: what it looks up depends on what it looked up before, more than %d times",
		c.Name(), c.Version(), mostRounds)
}
