// SPDX-License-Identifier: Apache-2.0

package lots_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/chart/lots"
)

func TestServices(t *testing.T) {
	const (
		set    = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {template: {metadata: {labels: {app: db, tier: front}}}}}`
		second = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: api}, spec: {template: {metadata: {labels: ` +
			`{app: api, tier: front, runs: twice}}}}}`
		third = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: jobs}, spec: {template: {metadata: {labels: {runs: twice}}}}}`
	)
	tests := map[string]struct {
		spec, labels string
		want         lots.Service
		serving      []string
	}{
		"one of a Deployment": {
			spec: "{selector: {app: web}}",
			want: lots.Service{Use: lots.Production, SideBySide: []string{"web"}}, serving: []string{"Deployment web"},
		},
		"one of several": {
			spec: "{type: NodePort, selector: {runs: twice}}",
			want: lots.Service{Use: lots.Production, SideBySide: []string{"api", "jobs"}}, serving: []string{"Deployment api", "Deployment jobs"},
		},
		"one of Pods side by side and in place": {
			spec: "{selector: {tier: front}}",
			want: lots.Service{
				Use: lots.AsItIs, Reason: "selects Pods side by side and StatefulSet db in place: capacity decides the shares",
				SideBySide: []string{"web", "api"}, InPlace: []string{"StatefulSet db"},
			},
		},
		"a headless one of a Deployment": {
			spec: "{clusterIP: None, selector: {app: web}}",
			want: lots.Service{Use: lots.Production, SideBySide: []string{"web"}}, serving: []string{"Deployment web"},
		},
		"a headless one by which Pods find each other": {
			spec: "{clusterIP: None, publishNotReadyAddresses: true, selector: {app: web}}",
			want: lots.Service{Use: lots.AsItIs, Reason: "headless, finds Pods before they are ready", SideBySide: []string{"web"}},
		},
		"a headless one of a StatefulSet": {
			spec: "{clusterIP: None, selector: {app: db}}",
			want: lots.Service{Use: lots.AsItIs, Reason: "headless, for StatefulSet db", InPlace: []string{"StatefulSet db"}},
		},
		"one of a StatefulSet": {
			spec: "{selector: {app: db}}",
			want: lots.Service{Use: lots.AsItIs, Reason: "selects StatefulSet db in place", InPlace: []string{"StatefulSet db"}},
		},
		"one of nothing": {
			spec: "{selector: {app: other}}", want: lots.Service{Use: lots.AsItIs, Reason: "selects no workload of the chart"},
		},
		"one that asks for more labels than Pods have": {
			spec: "{selector: {app: web, version: v2}}", want: lots.Service{Use: lots.AsItIs, Reason: "selects no workload of the chart"},
		},
		"one without a selector":       {spec: "{}", want: lots.Service{Use: lots.AsItIs, Reason: "no selector"}},
		"one with an empty selector":   {spec: "{selector: {}}", want: lots.Service{Use: lots.AsItIs, Reason: "no selector"}},
		"one with a text for selector": {spec: "{selector: app}", want: lots.Service{Use: lots.AsItIs, Reason: "no selector"}},
		"one that names another": {
			spec: "{type: ExternalName, selector: {app: web}}", want: lots.Service{Use: lots.AsItIs, Reason: "ExternalName"},
		},
		"one for previews": {
			spec: "{selector: {app: web}}", labels: "{shipper-lb: preview}",
			want: lots.Service{Use: lots.Preview, SideBySide: []string{"web"}},
		},
		"one with the label for production": {
			spec: "{selector: {app: db}}", labels: "{shipper-lb: production}",
			want: lots.Service{Use: lots.AsItIs, Reason: "selects StatefulSet db in place", InPlace: []string{"StatefulSet db"}},
		},
		"one with the selector of the original": {
			spec: "{selector: {app: web, shipper-traffic-status: enabled}}",
			want: lots.Service{Use: lots.Production, SideBySide: []string{"web"}}, serving: []string{"Deployment web"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.want.Name = "front"
			one := fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {name: front, labels: %s}, spec: %s}", tc.labels, tc.spec)
			table := lots.Of(objects(t, strings.Join([]string{web("{}", "{}"), set, second, third, one}, "\n---\n")), release)
			if diff := cmp.Diff([]lots.Service{tc.want}, table.Services); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			var serving []string
			for i := range table.Entries {
				if e := &table.Entries[i]; len(e.Serves) > 0 {
					serving = append(serving, e.String())
				}
			}
			if diff := cmp.Diff(tc.serving, serving); diff != "" {
				t.Errorf("that serve: -want +got:\n%s", diff)
			}
			if len(table.Refused) > 0 {
				t.Error(table.Refused)
			}
		})
	}
}

func TestServicesThatAreRefused(t *testing.T) {
	preview := `{apiVersion: v1, kind: Service, metadata: {name: %s, labels: {shipper-lb: preview}}, spec: {selector: {app: web}}}`
	tests := map[string]struct{ objects, want string }{
		"a selector with a number": {
			`{apiVersion: v1, kind: Service, metadata: {name: front}, spec: {selector: {app: 1}}}`,
			"Service front: spec.selector.app is 1, which is not a string: quote it in the chart",
		},
		"two for previews": {
			fmt.Sprintf(preview, "a") + "\n---\n" + fmt.Sprintf(preview, "b"),
			"Services a and b have the label shipper-lb: preview; give it to the one Service that previews select, and no other",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff([]string{tc.want}, lots.Of(objects(t, tc.objects), release).Refused); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestTargetPortsThatLeadToTheSameAreNoConflict has a Service name what it had by number.
func TestTargetPortsThatLeadToTheSameAreNoConflict(t *testing.T) {
	port := func(target any) []any { return []any{map[string]any{"port": int64(80), "targetPort": target}} }
	for _, alike := range []bool{true, false} {
		_, conflicts := lots.MergePorts(port(int64(8080)), port("http"), func(from, to string) bool {
			if from != "8080" || to != "http" {
				t.Errorf("compared %s with %s", from, to)
			}
			return alike
		})
		if len(conflicts) == 0 != alike {
			t.Errorf("alike %t: %v", alike, conflicts)
		}
	}
}

func TestMergePorts(t *testing.T) {
	tests := map[string]struct {
		incumbent, newest, want string
		conflicts               []string
	}{
		"the same": {"{name: http, port: 80}", "{name: http, port: 80}", "{name: http, port: 80}", nil},
		"a port that is new": {
			"{name: http, port: 80}", "{name: http, port: 80}, {name: grpc, port: 90}", "{name: http, port: 80}, {name: grpc, port: 90}", nil,
		},
		"a port that goes": {
			"{name: http, port: 80}, {name: grpc, port: 90}", "{name: http, port: 80}", "{name: http, port: 80}, {name: grpc, port: 90}", nil,
		},
		"a port of another name": {"{name: http, port: 80}", "{name: web, port: 80}", "{name: web, port: 80}", nil},
		"another port of the name": {
			"{name: http, port: 80}", "{name: http, port: 8080}", "{name: http, port: 8080}, {name: http-80, port: 80}", nil,
		},
		"a name that is taken twice": {
			"{name: http, port: 80}", "{name: http, port: 8080}, {name: http-80, port: 81}",
			"{name: http, port: 8080}, {name: http-80, port: 81}, {name: http-80-2, port: 80}", nil,
		},
		"ports without names":     {"{port: 80}", "{port: 8080}", "{port: 8080, name: port-8080}, {port: 80, name: port-80}", nil},
		"one port without a name": {"{port: 80}", "{port: 80}", "{port: 80}", nil},
		"TCP is the default":      {"{name: dns, port: 53, protocol: TCP}", "{name: dns, port: 53}", "{name: dns, port: 53}", nil},
		"the same port by UDP": {
			"{name: dns, port: 53, protocol: UDP}", "{name: dns-tcp, port: 53}",
			"{name: dns-tcp, port: 53}, {name: dns, port: 53, protocol: UDP}", nil,
		},
		"a name for a number": {
			"{name: http, port: 80, targetPort: http}", "{name: http, port: 80, targetPort: http}", "{name: http, port: 80, targetPort: http}", nil,
		},
		"nothing before": {"", "{port: 80}", "{port: 80}", nil},
		"nothing now":    {"{port: 80}", "", "{port: 80, name: port-80}", nil},
		"a port of nodes stays": {
			"{name: a, port: 80, nodePort: 30080}", "{name: b, port: 81}", "{name: b, port: 81}, {name: a, port: 80, nodePort: 30080}", nil,
		},
		"a port of nodes that goes": {
			"{name: a, port: 80, nodePort: 30080}", "{name: b, port: 81, nodePort: 30080}",
			"{name: b, port: 81, nodePort: 30080}, {name: a, port: 80}", nil,
		},
		"another port of the Pods": {
			"{name: http, port: 80, targetPort: 8080}", "{name: http, port: 80, targetPort: 9090}", "{name: http, port: 80, targetPort: 9090}",
			[]string{"port 80/TCP leads to 8080 in the incumbent and to 9090 in the newest Release: " +
				"give the port of the containers one name in both, and have the Service name it"},
		},
		"the port itself is the default": {
			"{name: http, port: 80}", "{name: http, port: 80, targetPort: 80}", "{name: http, port: 80, targetPort: 80}", nil,
		},
		"what is no port": {
			"80, {name: a, port: [1]}", "81, {name: a, port: x}", "81, {name: a, port: x}, {name: 'a-[1]', port: [1]}", nil,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ports := func(text string) []any {
				list, _ := objects(t, "{kind: Ports, apiVersion: v1, ports: ["+text+"]}")[0].Object["ports"].([]any)
				return list
			}
			got, conflicts := lots.MergePorts(ports(tc.incumbent), ports(tc.newest), nil)
			if diff := cmp.Diff(ports(tc.want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tc.conflicts, conflicts); diff != "" {
				t.Errorf("conflicts: -want +got:\n%s", diff)
			}
			again, _ := lots.MergePorts(ports(tc.incumbent), got, nil)
			if diff := cmp.Diff(got, again); diff != "" {
				t.Errorf("merged again: -want +got:\n%s", diff)
			}
		})
	}
}
