// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
)

const (
	// outageGrace is how long a Service that is not known to have served may lack endpoints: those of a first rollout are on their way.
	outageGrace = 10 * time.Second
	// maxOutages bounds the series of the metric.
	maxOutages = 1000
)

var serviceWithoutEndpoints = prometheus.NewDesc("shipper_service_without_endpoints",
	"1 while the production Service of an Application has no ready endpoints in a cluster, though a Release is to serve there, and from then "+
		"on while the cluster cannot be read. Absent otherwise, and where no reconciler leads. At most 1,000 series, the first by name. "+
		"Labels namespace and application: of the Application; cluster: the Cluster's name.",
	[]string{"namespace", "application", "cluster"}, nil)

// outages remembers which Services lack endpoints, by TrafficTarget and cluster. It is safe for concurrent use.
type outages struct {
	mu    sync.Mutex
	known map[types.NamespacedName]map[string]outage
}

// outage is one Service without endpoints.
type outage struct {
	application string
	since       time.Time
	// reported is false during the grace period.
	reported bool
}

var _ prometheus.Collector = &outages{}

func newOutages() *outages { return &outages{known: map[types.NamespacedName]map[string]outage{}} }

// observe marks the clusters where the Service lacks endpoints and is to be reported. again is when to look again because a grace period
// ends; 0 if none runs.
func (o *outages) observe(tt *shipper.TrafficTarget, outcomes []Outcome, now time.Time) (again time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := client.ObjectKeyFromObject(tt)
	was, is := o.known[key], map[string]outage{}
	for i := range outcomes {
		s := &outcomes[i]
		one, ok := was[s.want.Name]
		if (s.err != nil || s.missing) && ok { // it is not known to have ended
			is[s.want.Name] = one
		}
		if s.err != nil || s.missing || !s.empty {
			continue
		}
		if !ok {
			one = outage{application: tt.Labels[shipper.AppLabel], since: now}
		}
		left := outageGrace - now.Sub(one.since)
		one.reported = one.reported || left <= 0 || s.served
		if s.outage = one.reported; !s.outage {
			again = report.Sooner(again, left)
		}
		is[s.want.Name] = one
	}
	if o.known[key] = is; len(is) == 0 {
		delete(o.known, key)
	}
	return again
}

// forget removes a TrafficTarget that is gone.
func (o *outages) forget(key types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.known, key)
}

// Describe is prometheus.Collector.
func (*outages) Describe(c chan<- *prometheus.Desc) { c <- serviceWithoutEndpoints }

// Collect is prometheus.Collector. Several Releases may be to serve by one Service, which is one series.
func (o *outages) Collect(c chan<- prometheus.Metric) {
	type series struct{ namespace, application, cluster string }
	all := sets.New[series]()
	o.mu.Lock()
	for key, clusters := range o.known {
		for cluster, one := range clusters {
			if one.reported {
				all.Insert(series{key.Namespace, one.application, cluster})
			}
		}
	}
	o.mu.Unlock()
	sorted := slices.SortedFunc(slices.Values(all.UnsortedList()), func(a, b series) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.application, b.application), cmp.Compare(a.cluster, b.cluster))
	})
	for _, s := range sorted[:min(len(sorted), maxOutages)] {
		c <- prometheus.MustNewConstMetric(serviceWithoutEndpoints, prometheus.GaugeValue, 1, s.namespace, s.application, s.cluster)
	}
}

// servedIn adds the clusters where a TrafficTarget's status says that it had endpoints, or that the lack of them was reported.
func servedIn(served sets.Set[string], tt *shipper.TrafficTarget) {
	for _, c := range tt.Status.Clusters {
		if c.AchievedTraffic > 0 || withoutEndpoints(c.Conditions) != nil {
			served.Insert(c.Name)
		}
	}
}

// withoutEndpoints is the condition that reports a Service without endpoints; nil if there is none.
func withoutEndpoints(conditions []shipper.Condition) *shipper.Condition {
	c := shipper.FindCondition(conditions, shipper.TargetReady)
	if c == nil || c.Reason != shipper.ServiceWithoutEndpoints {
		return nil
	}
	return c
}

// orOutage is the condition Ready of a cluster, which says so if the Service has no endpoints. Its message has no numbers: each change of
// it is an event.
func orOutage(s Outcome, ready shipper.Condition) shipper.Condition {
	if !s.outage || ready.Status == corev1.ConditionTrue || len(s.services) != 1 {
		return ready
	}
	cause := "pods are ready and not in its endpoints: compare its selector with the labels of the pods"
	switch {
	case s.plan.Late:
		cause = "there are no pods of this release"
	case s.plan.NotReady >= s.plan.Needed:
		cause = "no pod of this release that is to receive traffic is ready: the CapacityTarget says why"
	}
	ready.Reason = shipper.ServiceWithoutEndpoints
	ready.Message = fmt.Sprintf("Service %q has no ready endpoints, though this release is to serve: %s", s.services[0], cause)
	return ready
}

// outageEvents are the Warnings about Services that lost their endpoints. It is pure.
func outageEvents(was, is *shipper.TrafficTarget) []report.Event {
	var out []report.Event
	for _, c := range is.Status.Clusters {
		lost := withoutEndpoints(c.Conditions)
		reported := slices.ContainsFunc(was.Status.Clusters, func(old shipper.ClusterTrafficStatus) bool {
			return old.Name == c.Name && withoutEndpoints(old.Conditions) != nil
		})
		if lost == nil || reported {
			continue
		}
		out = append(out, report.Event{
			Type: corev1.EventTypeWarning, Reason: shipper.ServiceWithoutEndpoints, Action: "UpdateStatus",
			Note: fmt.Sprintf("cluster %q, release %q: %s", c.Name, releaseOf(is), lost.Message),
		})
	}
	return out
}
