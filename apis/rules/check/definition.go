// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// SharedNamespace is the namespace with the Checks that all namespaces share, unless --shared-checks-namespace names another.
const SharedNamespace = "shipper-checks"

// Defaults of a Check.
const (
	DefaultInterval              = time.Minute
	DefaultTimeout               = 10 * time.Second
	DefaultRunTimeout            = 10 * time.Minute // of job
	DefaultConsecutiveErrorLimit = 4
	maxCount                     = 1000
)

// Interval is the time between two measurements.
func Interval(c *shipper.CheckSpec) time.Duration { return cmp.Or(c.Interval.Value(), DefaultInterval) }

// Timeout bounds one measurement, or the Job of one that is made by a Job.
func Timeout(c *shipper.CheckSpec) time.Duration {
	if Once(c) {
		return cmp.Or(c.Timeout.Value(), DefaultRunTimeout)
	}
	return min(cmp.Or(c.Timeout.Value(), DefaultTimeout), Interval(c))
}

// Once reports whether a Check is made once in each cluster.
func Once(c *shipper.CheckSpec) bool { return c.Tests != nil || c.Job != nil }

// Count is the number of measurements that give a result at a step that goes on by itself after such a time.
func Count(c *shipper.CheckSpec, after time.Duration) int32 {
	switch fits := (after - c.InitialDelay.Value() + Interval(c) - 1) / Interval(c); {
	case Once(c):
		return 1
	case c.Count > 0:
		return c.Count
	default:
		return int32(max(1, min(fits, maxCount)))
	}
}

// Compares reports whether a Check compares a Release with the incumbent.
func Compares(c *shipper.CheckSpec) bool {
	texts := []string{}
	if c.Prometheus != nil {
		for _, query := range c.Prometheus.Queries {
			texts = append(texts, string(query))
		}
	}
	if c.HTTP != nil {
		texts = append(texts, c.HTTP.URL, c.HTTP.Body)
		for _, value := range c.HTTP.Headers {
			texts = append(texts, value)
		}
	}
	if c.Job != nil {
		texts = append(texts, string(c.Job.Raw))
	}
	return slices.ContainsFunc(texts, func(text string) bool { return Names(text, Incumbent) })
}

// Variables are those of a Check's expressions: its queries, each a number or a list of numbers, the response of a request, and args.
type Variables struct {
	// Queries and Args are names, the former sorted.
	Queries []string
	// List is true if queries give lists, and HTTP if there is a response.
	List, HTTP bool
	Args       []string
}

// VariablesOf are the variables of a Check's expressions.
func VariablesOf(c *shipper.CheckSpec) Variables {
	out := Variables{HTTP: c.HTTP != nil, List: c.HTTP == nil && c.Over == shipper.OverFleet, Args: namesOf(c.Args)}
	if c.Prometheus != nil {
		out.Queries = slices.Sorted(maps.Keys(c.Prometheus.Queries))
	}
	return out
}

// KeyOf is the Check that a step names. An error means that it may not name it.
func KeyOf(name, namespace, shared string) (types.NamespacedName, error) {
	in, of, found := strings.Cut(name, "/")
	switch {
	case !found:
		return types.NamespacedName{Namespace: namespace, Name: name}, nil
	case in == shared && shared != "" && of != "" && !strings.Contains(of, "/"):
		return types.NamespacedName{Namespace: shared, Name: of}, nil
	}
	return types.NamespacedName{}, fmt.Errorf("a Check of another namespace cannot be named, except those of %s", shared)
}
