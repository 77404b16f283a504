// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/outward"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/cluster"
	"shipper.dev/shipper/webhook/response"
)

// eu is a valid Cluster, changed by edits.
func eu(edits ...func(*shipper.ClusterSpec)) *shipper.Cluster {
	c := &shipper.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "eu-1"},
		Spec:       shipper.ClusterSpec{APIMaster: "https://10.0.0.1:6443", Region: "eu", Capabilities: []string{"gpu", "ssd"}},
	}
	for _, edit := range edits {
		edit(&c.Spec)
	}
	return c
}

func server(url string) func(*shipper.ClusterSpec) {
	return func(s *shipper.ClusterSpec) { s.APIMaster = url }
}

func capabilities(names ...string) func(*shipper.ClusterSpec) {
	return func(s *shipper.ClusterSpec) { s.Capabilities = names }
}

func region(name string) func(*shipper.ClusterSpec) {
	return func(s *shipper.ClusterSpec) { s.Region = name }
}

func taints(keys ...string) func(*shipper.ClusterSpec) {
	return func(s *shipper.ClusterSpec) {
		for _, key := range keys {
			s.Taints = append(s.Taints, shipper.ClusterTaint{Key: key, Value: "yes", Effect: shipper.TaintNoSchedule})
		}
	}
}

func onLeave(p shipper.ClusterLeavePolicy) func(*shipper.ClusterSpec) {
	return func(s *shipper.ClusterSpec) { s.OnLeave = p }
}

// kept is a Cluster that has Shipper's finalizer.
func kept(c *shipper.Cluster) *shipper.Cluster {
	c.Finalizers = []string{shipper.ClusterFinalizer}
	return c
}

// placed are n Releases on the Cluster eu-1.
func placed(n int) []client.Object {
	var out []client.Object
	for i := range n {
		out = append(out, ask.Release(ask.Application(), nil, ask.ReleaseAnnotated(shipper.ReleaseClustersAnnotation, "eu-1,us-1"),
			func(r *shipper.Release) { r.Name = fmt.Sprintf("rel-%d", i) }))
	}
	return out
}

// elsewhere ends the warning about a Cluster that is deleted and keeps what runs there.
const elsewhere = "; those with a placement go elsewhere at once, and what they left is not taken up again when a Cluster of this name " +
	"is created"

func TestClustersAreJudged(t *testing.T) {
	const invalid = `Cluster.shipper.booking.com "eu-1" is invalid: `
	const like = "use the URL of the API server as in a kubeconfig, such as https://10.0.0.1:6443"
	blank := " "
	for sentence, tc := range map[string]struct {
		req     *admission.Request
		known   []client.Object
		message string
		warned  []string
	}{
		"a good one": {req: ask.Create("ann", eu())},
		"without a server": {
			req: ask.Create("ann", eu(server(""))), message: invalid + `spec.apiMaster: Invalid value: "": is needed: ` + like,
		},
		"with a server that is no URL": {
			req:     ask.Create("ann", eu(server("10.0.0.1:6443"))),
			message: invalid + `spec.apiMaster: Invalid value: "10.0.0.1:6443": is not a URL: ` + like,
		},
		"with a server that speaks http": {
			req:     ask.Create("ann", eu(server("http://10.0.0.1"))),
			message: invalid + `spec.apiMaster: Invalid value: "http://10.0.0.1": must be https: credentials are sent there; ` + like,
		},
		"with credentials in the URL": {
			req: ask.Create("ann", eu(server("https://me:secret@10.0.0.1"))),
			message: invalid + `spec.apiMaster: Invalid value: "https://me:secret@10.0.0.1": must have neither credentials, query nor fragment: ` +
				`credentials belong into the Secret of the same name`,
		},
		"without a region": {
			req:     ask.Create("ann", eu(region(" "))),
			message: invalid + `spec.region: Required value: name the region as clusterRequirements.regions will`,
		},
		"with a capability twice": {
			req:     ask.Create("ann", eu(capabilities("gpu", "ssd", "gpu"))),
			message: invalid + `spec.capabilities[2]: Duplicate value: "gpu"`,
		},
		"with a capability without a name": {
			req:     ask.Create("ann", eu(capabilities(""))),
			message: invalid + `spec.capabilities[0]: Required value: a capability has a name`,
		},
		"with a blank identity": {
			req:     ask.Create("ann", eu(func(s *shipper.ClusterSpec) { s.Scheduler.Identity = &blank })),
			message: invalid + `spec.scheduler.identity: Invalid value: " ": leave it out to place by the cluster's own name`,
		},
		"what was wrong before does not hold metadata up": {req: ask.Update("ann", eu(region("")), eu(region("")))},
		"what was wrong before holds a change of spec up": {
			req:     ask.Update("ann", eu(region(""), capabilities()), eu(region(""))),
			message: invalid + `spec.region: Required value: name the region as clusterRequirements.regions will`,
		},
		"a change of region moves nothing, and says so": {
			req: ask.Update("ann", eu(region("us")), eu()), known: placed(1),
			warned: []string{"1 Release(s) are placed on cluster eu-1 and stay, whatever it offers now: default/rel-0"},
		},
		"a capability less moves nothing, and says so": {
			req: ask.Update("ann", eu(capabilities("ssd")), eu()), known: placed(1),
			warned: []string{"1 Release(s) are placed on cluster eu-1 and stay, whatever it offers now: default/rel-0"},
		},
		"a capability more needs no word": {
			req: ask.Update("ann", eu(capabilities("ssd", "gpu", "tpu")), eu()), known: placed(1),
		},
		"a change where nothing is placed": {req: ask.Update("ann", eu(region("us")), eu())},
		"one where Releases run is deleted with a word": {
			req: ask.Delete("ann", eu()), known: placed(7),
			warned: []string{"7 Release(s) are placed on cluster eu-1 and what they run there is left as it is: " +
				"default/rel-0, default/rel-1, default/rel-2, default/rel-3, default/rel-4 and 2 more" + elsewhere},
		},
		"one where none run is deleted without": {req: ask.Delete("ann", eu())},
		"one that removes what runs there says what it removes": {
			req: ask.Delete("ann", kept(eu(onLeave(shipper.OnLeaveRemove)))), known: placed(2),
			warned: []string{"2 Release(s) are placed on cluster eu-1, and Shipper removes all that they run there before the Cluster " +
				"goes: default/rel-0, default/rel-1; it has onLeave: Remove, and waits for those that no other cluster can take"},
		},
		"one that removes, where none run": {req: ask.Delete("ann", eu(onLeave(shipper.OnLeaveRemove)))},
		"one that keeps what runs there": {req: ask.Delete("ann", eu(onLeave(shipper.OnLeaveKeep))), known: placed(1), warned: []string{
			"1 Release(s) are placed on cluster eu-1 and what they run there is left as it is: default/rel-0" + elsewhere}},
		"with a policy for leaving that there is not": {
			req:     ask.Create("ann", eu(onLeave("Burn"))),
			message: invalid + `spec.onLeave: Unsupported value: "Burn": supported values: "Keep", "Remove"`,
		},
		"a new taint moves nothing, and says so": {
			req: ask.Update("ann", eu(taints("gpu", "old")), eu(taints("old"))), known: placed(1), warned: []string{
				"1 Release(s) are placed on cluster eu-1 and stay, although it is tainted gpu=yes:NoSchedule now: default/rel-0; " +
					"the next Release of an Application with regions, or with edited clusterRequirements, is not placed there"},
		},
		"a taint where nothing is placed":                            {req: ask.Update("ann", eu(taints("gpu")), eu())},
		"a taint less needs no word":                                 {req: ask.Update("ann", eu(), eu(taints("gpu"))), known: placed(1)},
		"a Cluster that is tainted when it is created needs no word": {req: ask.Create("ann", eu(taints("gpu"))), known: placed(1)},
	} {
		t.Run(sentence, func(t *testing.T) {
			hook, a := &cluster.Webhook{State: ask.Know(t, ask.Grant(), tc.known...).State}, &response.Response{}
			decision := response.Decision("")
			if tc.message != "" {
				decision = response.Invalid
			}
			ask.CheckRefusal(t, hook.Validate(t.Context(), tc.req, a), decision, tc.message)
			if diff := cmp.Diff(tc.warned, a.Warnings()); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMetricsAreJudged(t *testing.T) {
	const invalid = `Cluster.shipper.booking.com "eu-1" is invalid: spec.metrics.`
	metrics := func(address, secret, label string) *shipper.Cluster {
		return eu(func(s *shipper.ClusterSpec) {
			s.Metrics = &shipper.ClusterMetrics{Address: address, SecretName: secret, TenantLabel: label}
		})
	}
	const noURL = `address: Invalid value: "(URL)": must be an http or https URL, such as https://prometheus.example.com`
	const parts = `must have neither credentials, query nor fragment: credentials belong into the Secret that secretName names`
	policy, err := outward.ParsePolicy("http://prometheus.example.com:9090, https://127.0.0.1:9443")
	if err != nil {
		t.Fatal(err)
	}
	for sentence, tc := range map[string]struct {
		cluster *shipper.Cluster
		message string
		warned  []string
	}{
		"by https":               {cluster: metrics("https://prometheus.example.com/eu", "metrics-eu", "namespace")},
		"by http that is listed": {cluster: metrics("http://prometheus.example.com:9090/eu", "", "namespace")},
		"by http": {
			cluster: metrics("http://10.0.0.1:9090", "", "namespace"), message: `address: Invalid value: "http://10.0.0.1:9090": must be ` +
				`https: credentials and values are sent there; --outgoing-urls may list others`,
		},
		"on this machine, as is listed": {cluster: metrics("https://127.0.0.1:9443", "", "namespace")},
		"on this machine": {
			cluster: metrics("https://localhost", "", "namespace"), message: `address: Invalid value: "https://localhost": localhost is a ` +
				`name of the machine itself, which is not connected to`,
		},
		"at a metadata service": {
			cluster: metrics("https://169.254.169.254", "", "namespace"), message: `address: Invalid value: "https://169.254.169.254": ` +
				`169.254.169.254 is a link-local address, which is not connected to`,
		},
		"by no URL":         {cluster: metrics("prometheus:9090", "", "namespace"), message: noURL},
		"by another scheme": {cluster: metrics("ftp://prometheus", "", "namespace"), message: noURL},
		"with a password": {
			cluster: metrics("https://me:secret@a.example.com", "", "namespace"),
			message: `address: Invalid value: "https://a.example.com": ` + parts,
		},
		"with a query": {
			cluster: metrics("https://a.example.com?a=b", "", "namespace"),
			message: `address: Invalid value: "https://a.example.com?…": ` + parts,
		},
		"with a Secret of no name": {
			cluster: metrics("https://a.example.com", "A", "namespace"), message: `secretName: Invalid value: "A": a lowercase RFC 1123 ` +
				`subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric ` +
				`character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
		},
		"by a label of Prometheus": {
			cluster: metrics("https://a.example.com", "", "__name__"), message: `tenantLabel: Invalid value: "__name__": must be the name of ` +
				`a label: letters, digits and _, not with a digit or __ at its beginning`,
		},
		"for all namespaces": {
			cluster: metrics("https://a.example.com", "", ""),
			warned:  []string{"spec.metrics has no tenantLabel: every Application reads the series of all namespaces"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			hook, a := &cluster.Webhook{State: ask.Know(t, ask.Grant()).State, Outgoing: &policy}, &response.Response{}
			decision, message := response.Decision(""), tc.message
			if message != "" {
				decision, message = response.Invalid, invalid+message
			}
			ask.CheckRefusal(t, hook.Validate(t.Context(), ask.Create("ann", tc.cluster), a), decision, message)
			if diff := cmp.Diff(tc.warned, a.Warnings()); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatDoesNotDecode(t *testing.T) {
	req := ask.Create("ann", eu())
	req.Object.Raw = []byte(`{"spec":7}`)
	hook := &cluster.Webhook{State: ask.Know(t, ask.Grant()).State}
	if err := hook.Validate(t.Context(), req, &response.Response{}); err == nil {
		t.Error("it passed")
	}
}
