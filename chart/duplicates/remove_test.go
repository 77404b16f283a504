// SPDX-License-Identifier: Apache-2.0

//nolint:lll // each manifest is one line
package duplicates_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"shipper.dev/shipper/chart/duplicates"
)

// parse reads objects of YAML.
func parse(t *testing.T, documents ...string) (out []unstructured.Unstructured) {
	t.Helper()
	for _, document := range documents {
		o := unstructured.Unstructured{}
		raw, err := yaml.YAMLToJSON([]byte(document))
		if err == nil {
			err = o.UnmarshalJSON(raw)
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, o)
	}
	return out
}

// pods is a Deployment with a specification of Pods.
func pods(spec string) string {
	return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {metadata: {labels: {app: web}}, spec: ` + spec + `}}}`
}

// container is such a Deployment with one container.
func container(fields string) string { return pods(`{containers: [{name: web, ` + fields + `}]}`) }

func TestDuplicatesAreRemovedWithoutEffectOnContainers(t *testing.T) {
	const at = "spec.template.spec."
	for sentence, tc := range map[string]struct {
		given, want []string
		found       []string
	}{
		"of two variables the last counts, at its place": {
			given: []string{container(`env: [{name: A, value: x}, {name: B, value: b}, {name: A, value: z}, {name: C, value: $(A)}]`)},
			want:  []string{container(`env: [{name: B, value: b}, {name: A, value: z}, {name: C, value: $(A)}]`)},
			found: []string{at + `containers[0].env[0] and [2] have the same name "A"; the first is left out: a container gets the value of the last`},
		},
		"variables between the two refer to the first": {
			given: []string{container(`env: [{name: A, value: x}, {name: B, value: "$(A)/$$(A)/$$$(A)"}, {name: A, value: $(A):z}, {name: A, value: $(A)!}]`)},
			want:  []string{container(`env: [{name: B, value: "x/$$(A)/$$x"}, {name: A, value: "x:z!"}]`)},
			found: []string{
				at + `containers[0].env[0] and [2] have the same name "A"; the first is left out: a container gets the value of the last`,
				at + `containers[0].env[2] and [3] have the same name "A"; the first is left out: a container gets the value of the last`,
			},
		},
		"equal variables are one": {
			given: []string{container(`env: [{name: A}, {name: A}]`)},
			want:  []string{container(`env: [{name: A}]`)},
			found: []string{at + `containers[0].env[0] and [1] have the same name "A"; the first is left out: a container gets the value of the last`},
		},
		"a port with two names keeps the first, which probes and Services get": {
			given: []string{
				container(`ports: [{containerPort: 80, name: http}, {containerPort: 80, protocol: TCP, name: metrics}, {containerPort: 80, protocol: UDP}],
  livenessProbe: {httpGet: {port: metrics}}, readinessProbe: {tcpSocket: {port: 80}}, lifecycle: {preStop: {httpGet: {port: metrics}}}`),
				`{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 1, targetPort: metrics}, {port: 2, targetPort: 80}]}}`,
				`{apiVersion: v1, kind: Service, metadata: {name: other}, spec: {selector: {app: other}, ports: [{port: 1, targetPort: metrics}]}}`,
			},
			want: []string{
				container(`ports: [{containerPort: 80, name: http, protocol: TCP}, {containerPort: 80, protocol: UDP}],
  livenessProbe: {httpGet: {port: http}}, readinessProbe: {tcpSocket: {port: 80}}, lifecycle: {preStop: {httpGet: {port: http}}}`),
				`{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 1, targetPort: http}, {port: 2, targetPort: 80}]}}`,
				`{apiVersion: v1, kind: Service, metadata: {name: other}, spec: {selector: {app: other}, ports: [{port: 1, targetPort: metrics}]}}`,
			},
			found: []string{at + `containers[0].ports[0] and [1] have the same containerPort and protocol "80, TCP"; they become one port, "http": ` +
				`probes and Services that name "metrics" get it, all else has to name "http"`},
		},
		"a port gets the name and the node's port of another one": {
			given: []string{container(`ports: [{containerPort: 80}, {containerPort: 80, name: http, hostPort: 8080, hostIP: 10.0.0.1}]`)},
			want:  []string{container(`ports: [{containerPort: 80, name: http, hostPort: 8080, hostIP: 10.0.0.1}]`)},
			found: []string{at + `containers[0].ports[0] and [1] have the same containerPort and protocol "80, TCP"; they become one port`},
		},
		"hostnames are merged, references and finalizers are kept once": {
			given: []string{pods(`{hostAliases: [{ip: 10.0.0.1, hostnames: [a, b]}, {ip: 10.0.0.1, hostnames: [b, c]}], imagePullSecrets: [{name: x}, {name: x}]}`),
				`{apiVersion: v1, kind: ServiceAccount, metadata: {name: web, finalizers: [a/b, a/b]}, secrets: [{name: x}, {name: x}], imagePullSecrets: [{name: x}, {name: x}]}`},
			want: []string{pods(`{hostAliases: [{ip: 10.0.0.1, hostnames: [a, b, c]}], imagePullSecrets: [{name: x}]}`),
				`{apiVersion: v1, kind: ServiceAccount, metadata: {name: web, finalizers: [a/b]}, secrets: [{name: x}], imagePullSecrets: [{name: x}, {name: x}]}`},
			found: []string{
				at + `imagePullSecrets[0] and [1] have the same name "x"; the first is left out`,
				at + `hostAliases[0] and [1] have the same ip "10.0.0.1"; the first gets the hostnames of both`,
				`metadata.finalizers[0] and [1] have the same value "a/b"; the second is left out`,
				`secrets[0] and [1] have the same name "x"; the first is left out`,
			},
		},
		"equal elements of other lists are one": {
			given: []string{pods(`{volumes: [{name: v, emptyDir: {}}, {name: v, emptyDir: {}}], initContainers: [{name: i, volumeMounts: [{name: v, mountPath: /x}, {name: v, mountPath: /x}]}]}`)},
			want:  []string{pods(`{volumes: [{name: v, emptyDir: {}}], initContainers: [{name: i, volumeMounts: [{name: v, mountPath: /x}]}]}`)},
			found: []string{
				at + `initContainers[0].volumeMounts[0] and [1] have the same mountPath "/x"; the second is left out`,
				at + `volumes[0] and [1] have the same name "v"; the second is left out`,
			},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			given, before := parse(t, tc.given...), parse(t, tc.given...)
			got, findings := duplicates.Remove(given)
			var found []string
			for _, f := range findings {
				if found = append(found, f.Text); f.Refused {
					t.Errorf("refused: %s", f.Text)
				}
			}
			if diff := cmp.Diff(parse(t, tc.want...), got); diff != "" {
				t.Errorf("objects: -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tc.found, found); diff != "" {
				t.Errorf("findings: -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(before, given); diff != "" {
				t.Errorf("what was given has changed: -want +got:\n%s", diff)
			}
			again, none := duplicates.Remove(got)
			if diff := cmp.Diff(got, again); diff != "" || none != nil {
				t.Errorf("again: %v\n%s", none, diff)
			}
			checkApplicable(t, given, got)
		})
	}
}

// checkApplicable asks the schema that server-side apply uses: it takes all objects, and did not take some of those that were given.
func checkApplicable(t *testing.T, given, got []unstructured.Unstructured) {
	t.Helper()
	schema, refused := applyconfigurations.NewTypeConverter(scheme.Scheme), false
	for i := range got {
		if _, err := schema.ObjectToTyped(&got[i]); err != nil {
			t.Errorf("server-side apply refuses it: %v", err)
		}
		_, err := schema.ObjectToTyped(&given[i])
		refused = refused || err != nil
	}
	if !refused {
		t.Error("server-side apply takes what was given")
	}
}

func TestDuplicatesThatKubernetesRefusesAreRefused(t *testing.T) {
	const at, ports = "spec.template.spec.", `spec: {selector: {app: web}, ports: [{port: 1, targetPort: b}]}}`
	service := `{apiVersion: v1, kind: Service, metadata: {name: web}, ` + ports
	for sentence, tc := range map[string]struct {
		given []string
		want  string
	}{
		"volumes": {
			[]string{pods(`{volumes: [{name: v, emptyDir: {}}, {name: v, secret: {secretName: x}}]}`)},
			at + `volumes[0] and [1] have the same name "v"; Kubernetes accepts no two: remove one`,
		},
		"ports of a Service": {
			[]string{`{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{name: a, port: 80}, {name: b, port: 80}]}}`},
			`spec.ports[0] and [1] have the same port and protocol "80, TCP"; Kubernetes accepts no two: remove one`,
		},
		"two ports of the node": {
			[]string{container(`ports: [{containerPort: 80, hostPort: 1}, {containerPort: 80, hostPort: 2}]`)},
			at + `containers[0].ports[0] and [1] have the same containerPort and protocol "80, TCP"; they are for different ports of the node, ` +
				`of which server-side apply takes one: remove one`,
		},
		"a reference to a value that is not known": {
			[]string{container(`env: [{name: A, valueFrom: {secretKeyRef: {name: x, key: y}}}, {name: B, value: $(A)}, {name: A}]`)},
			at + `containers[0].env[0] and [2] have the same name "A"; B refers to the first, whose value is not in the manifest: ` +
				`give the two other names`,
		},
		"a reference that makes the object much larger": {
			[]string{container(`env: [{name: A, value: ` + strings.Repeat("x", 1<<10) + `}, {name: B, value: $(A)$(A)}, {name: C, value: $(A)$(A)$(A)}, {name: A}]`)},
			at + `containers[0].env[0] and [3] have the same name "A"; C refers to the first, and the object becomes larger by more than ` +
				`4096 bytes: give the two other names`,
		},
		"a long name of a port": {
			[]string{container(`ports: [{containerPort: 80, name: a-name-of-16-cha}, {containerPort: 80, name: b}]`)},
			at + `containers[0].ports[0] and [1] have the same containerPort and protocol "80, TCP"; the name of the first has more than 15 ` +
				`characters: give it a shorter one`,
		},
		"a last variable that may be absent": {
			[]string{container(`env: [{name: A, value: x}, {name: A, valueFrom: {configMapKeyRef: {name: x, key: y, optional: true}}}]`)},
			at + `containers[0].env[0] and [1] have the same name "A"; the second may be absent, and then the first counts: remove one`,
		},
		"a port that another container has, too": {
			[]string{pods(`{containers: [{name: a, ports: [{containerPort: 80, name: a}, {containerPort: 80, name: b}]}, {name: b, ports: [{containerPort: 81, name: b}]}]}`), service},
			`spec.ports[0].targetPort "b" is a port that has another name too in some of the Pods, and server-side apply takes one name for a ` +
				`port: give the port one name in all of them`,
		},
		"a Service that needs both names": {
			[]string{container(`ports: [{containerPort: 80, name: a}, {containerPort: 80, name: b}]`),
				`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {template: {metadata: {labels: {app: web}}, ` +
					`spec: {containers: [{name: c, ports: [{name: b, containerPort: 81}]}]}}}}`, service},
			`spec.ports[0].targetPort "b" is a port that has another name too in some of the Pods, and server-side apply takes one name for a ` +
				`port: give the port one name in all of them`,
		},
	} {
		_, found := duplicates.Remove(parse(t, tc.given...))
		if len(found) == 0 || !found[len(found)-1].Refused || found[len(found)-1].Text != tc.want {
			t.Errorf("%s: %+v, want %s", sentence, found, tc.want)
		}
	}
}

func TestReferencesDoNotMakeObjectsMuchLarger(t *testing.T) {
	doubling, many := `env: [{name: V0, value: x}`, `env: [{name: A, value: `+strings.Repeat("x", 1000)+`}`
	for i := range 20 {
		before := strconv.Itoa(i)
		doubling += `, {name: V` + strconv.Itoa(i+1) + `, value: $(V` + before + `)$(V` + before + `)}, {name: V` + before + `}`
		many += `, {name: B` + before + `, value: $(A)}`
	}
	for sentence, given := range map[string]string{
		"each variable doubles the one before": container(doubling + "]"),
		"one variable refers to another often": container(`env: [{name: A, value: ` + strings.Repeat("x", 1000) + `}, {name: B, value: ` +
			strings.Repeat("$(A)", 1000) + `}, {name: A}]`),
		"each of many variables refers to another": container(many + `, {name: A}]`),
	} {
		objects := parse(t, given)
		got, _ := duplicates.Remove(objects)
		if before, now := sizeOf(objects[0].Object), sizeOf(got[0].Object); now > before+4<<10 {
			t.Errorf("%s: %d bytes have become %d", sentence, before, now)
		}
	}
}

func TestFindingsOfAnObjectAreBounded(t *testing.T) {
	const twice = `, {name: A}, {name: A}`
	for sentence, tc := range map[string]struct {
		env     string
		found   int
		last    string
		refused int
	}{
		"as many as are returned": {env: strings.Repeat(`, {name: A}`, 16), found: 16},
		"many more":               {env: strings.Repeat(twice, 50), found: 17, last: "84 more lists have elements of one key"},
		"a refused one behind many": {
			env:   strings.Repeat(twice, 50) + strings.Repeat(`, {name: A, valueFrom: {secretKeyRef: {optional: true}}}, {name: A}`, 2),
			found: 18, last: "87 more lists have elements of one key", refused: 1,
		},
	} {
		_, found := duplicates.Remove(parse(t, container(`env: [{name: A}`+tc.env+`]`), container(`env: []`)))
		refused := 0
		for _, f := range found {
			if f.Refused {
				refused++
			}
		}
		if len(found) != tc.found || refused != tc.refused || tc.last != "" && found[len(found)-1].Text != tc.last {
			t.Errorf("%s: %d, %d refused, %+v", sentence, len(found), refused, found[max(0, len(found)-2):])
		}
	}
}

// sizeOf is how many bytes the texts in a value have.
func sizeOf(value any) (n int) {
	switch value := value.(type) {
	case string:
		return len(value)
	case []any:
		for _, e := range value {
			n += sizeOf(e)
		}
	case map[string]any:
		for key, e := range value {
			n += len(key) + sizeOf(e)
		}
	}
	return n
}
