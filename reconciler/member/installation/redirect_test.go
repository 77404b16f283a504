// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/member/drift"
)

// parsed is an object of this text.
func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if raw, err := yaml.YAMLToJSON([]byte("apiVersion: v1\nkind: Thing\n" + text)); err != nil || u.UnmarshalJSON(raw) != nil {
		t.Fatalf("%q is no object: %v", text, err)
	}
	return u
}

// aService is a Service of this text, which traffic is shifted on unless it has other labels.
func aService(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := parsed(t, text)
	u.SetKind("Service")
	labels := u.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[shipper.LBLabel] = shipper.LBForProduction
	u.SetLabels(labels)
	return u
}

// TestEveryFieldThatAChartLeavesOutIsSetBack goes through all fields that Kubernetes has.
func TestEveryFieldThatAChartLeavesOutIsSetBack(t *testing.T) {
	kept := append(slices.Clone(allocated), ofProviders...)
	fields := reflect.TypeFor[corev1.ServiceSpec]()
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
		live, chart := aService(t, "spec: {type: LoadBalancer}"), aService(t, "spec: {type: LoadBalancer}")
		if name == "type" {
			chart = aService(t, "spec: {}")
		} else {
			section(live, "spec")[name] = "edited"
		}
		value, there := section(withoutRedirections(chart, live), "spec")[name]
		if null := there && value == nil; null == slices.Contains(kept, name) {
			t.Errorf("%s is set back: %t", name, null)
		}
	}
}

func TestOnlyWhatRedirectsAServiceIsSetBack(t *testing.T) {
	for sentence, tc := range map[string]struct{ chart, live, want string }{
		"what the chart has": {
			chart: "spec: {type: NodePort, ports: [{port: 80}]}", live: "spec: {type: ClusterIP, ports: [{port: 80, targetPort: 9999}]}",
			want: "spec: {type: NodePort, ports: [{port: 80}]}",
		},
		"an alias of another host": {
			chart: "spec: {ports: [{port: 80}]}", live: "spec: {type: ExternalName, externalName: example.com, ports: [{port: 80}]}",
			want: "spec: {type: null, externalName: null, ports: [{port: 80}]}",
		},
		"what the API server allocates": {
			chart: "spec: {}", live: "spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ipFamilies: [IPv4], ipFamilyPolicy: SingleStack}",
			want: "spec: {}",
		},
		"a load balancer's class where the chart wants no load balancer": {
			chart: "spec: {}", live: "spec: {type: LoadBalancer, loadBalancerClass: x}", want: "spec: {type: null, loadBalancerClass: null}",
		},
		"labels and annotations that proxies follow, and no others": {
			chart: "metadata: {labels: {a: b}, annotations: {c: d}}\nspec: {}",
			live: "metadata: {labels: {team: x, service.kubernetes.io/service-proxy-name: x}, annotations: {note: x," +
				" service.kubernetes.io/topology-mode: Auto}}\nspec: {}",
			want: "metadata: {labels: {a: b, shipper-lb: production, service.kubernetes.io/service-proxy-name: null}," +
				" annotations: {c: d, service.kubernetes.io/topology-mode: null}}\nspec: {}",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			want := map[string]any{}
			if err := yaml.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			got := withoutRedirections(aService(t, tc.chart), aService(t, tc.live))
			raw, err := got.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			all := map[string]any{}
			if err := yaml.Unmarshal(raw, &all); err != nil {
				t.Fatal(err)
			}
			for key := range all {
				if _, compared := want[key]; !compared {
					delete(all, key)
				}
			}
			if diff := cmp.Diff(want, all); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWhatIsAllocatedIsNoDrift(t *testing.T) {
	chart := aService(t, "spec: {ports: [{name: http, port: 80}]}")
	want := aService(t, "spec: {type: ClusterIP, clusterIP: 10.0.0.9, clusterIPs: [10.0.0.9], ports: [{name: http, port: 80}]}")
	have := aService(t, "spec: {type: NodePort, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1],"+
		" ports: [{name: http, port: 80, nodePort: 30080}]}")
	for sentence, tc := range map[string]struct {
		chart *unstructured.Unstructured
		want  []string
	}{
		"where the chart leaves it to the API server": {chart, []string{"spec.type"}},
		"where the chart chooses it": {
			aService(t, "spec: {clusterIP: 10.0.0.9, ports: [{name: http, port: 80, nodePort: 30081}]}"),
			[]string{"spec.clusterIP", "spec.ports[name=http].nodePort", "spec.type"},
		},
		"unless traffic is not shifted on the Service": {
			parsed(t, "spec: {}"), []string{"spec.clusterIP", "spec.clusterIPs[0]", "spec.ports[name=http].nodePort", "spec.type"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			var got []string
			for _, d := range released(drift.Differences(want, have), tc.chart) {
				got = append(got, d.Text)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestFieldsOfProvidersAreReportedAndNotCorrected(t *testing.T) {
	balancer := "spec: {type: LoadBalancer, loadBalancerIP: 192.0.2.1, loadBalancerClass: x, clusterIP: None}"
	for sentence, tc := range map[string]struct {
		chart, live string
		want        []string
	}{
		"a chart that names none": {
			"spec: {type: LoadBalancer}", balancer, []string{"spec.clusterIP", "spec.loadBalancerIP", "spec.loadBalancerClass"},
		},
		"a chart that names them":     {balancer, balancer, nil},
		"a chart of no load balancer": {"spec: {}", "spec: {type: LoadBalancer, loadBalancerIP: 192.0.2.1}", nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			var got []string
			for _, d := range providers(aService(t, tc.chart), aService(t, tc.live)) {
				got = append(got, d.Text)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
