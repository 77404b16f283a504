// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// randomChart renders to a password, and to more random text than one Secret can have.
var randomChart = map[string]string{
	"templates/password.yaml": `
apiVersion: v1
kind: Secret
metadata: {name: password}
stringData: {password: "{{ randAlphaNum 12 }}"}
`,
	"templates/large.yaml": `{{ range $i, $n := until 3 }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: "large-{{ $i }}"}
data: {text: "{{ range until 80 }}{{ randAlphaNum 8000 }}{{ end }}"}
{{ end }}`,
}

// storedOf are the names of the Secrets in west with what a target rendered to.
func (s *fixture) storedOf(name string) []string {
	s.Helper()
	var list corev1.SecretList
	s.must(world.clusters[west].List(s.ctx, &list, client.InNamespace(shipper.SystemNamespace)))
	first := shipper.RenderingName(s.identity(), s.namespace, name)
	var out []string
	for _, secret := range list.Items {
		owned := slices.ContainsFunc(secret.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Name == first })
		if secret.Name == first || owned {
			out = append(out, secret.Name)
		}
	}
	return out
}

func TestARenderingIsStoredAndNeverMadeAgain(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	chart := s.namespace + "-random"
	s.publish(chart, randomChart)
	s.install("web-1", chart, "0.0.1", shipper.ChartValues{}, west)
	it := s.installed("web-1")
	first := shipper.RenderingName(s.identity(), s.namespace, "web-1")
	if diff := cmp.Diff([]string{first, first + "-2"}, s.storedOf("web-1")); diff != "" {
		t.Errorf("Secrets with what was rendered (-want +got):\n%s", diff)
	}
	var password corev1.Secret
	if !s.find(west, "password", &password) {
		t.Fatal("there is no password")
	}
	was := password.DeepCopy()

	s.publish(chart, map[string]string{"templates/password.yaml": "{{ fail \"rendered again\" }}"}) // nobody renders it
	s.must(world.clusters[west].Delete(s.ctx, &password))
	s.soon("the password is not there again", func() string {
		if s.find(west, "password", &password) && password.UID != was.UID {
			return ""
		}
		return fmt.Sprint(s.installed("web-1").Status)
	})
	if diff := cmp.Diff(was.Data, password.Data); diff != "" {
		t.Errorf("the password (-before +after):\n%s", diff)
	}

	s.must(s.management.Delete(s.ctx, it))
	s.gone(it)
	s.soon("what was rendered does not go", func() string { return strings.Join(s.storedOf("web-1"), " ") })
}

// lookingChart keeps its password from Release to Release, as charts do, and looks up what is not its own.
var lookingChart = map[string]string{
	"templates/password.yaml": `
{{- $old := lookup "v1" "Secret" .Release.Namespace "password" }}
apiVersion: v1
kind: Secret
metadata: {name: password}
{{- if $old }}
data: {password: {{ $old.data.password }}}
{{- else }}
data: {password: {{ randAlphaNum 12 | b64enc }}}
{{- end }}
`,
	"templates/taken.yaml": `
apiVersion: v1
kind: ConfigMap
metadata: {name: taken}
data:
  secret: {{ lookup "v1" "Secret" .Values.other "password" | toJson | quote }}
  secrets: {{ lookup "v1" "Secret" "" "" | toJson | quote }}
  namespace: {{ lookup "v1" "Namespace" "" .Release.Namespace | toJson | quote }}
  kind: {{ lookup "example.com/v1" "Unknown" .Release.Namespace "x" | toJson | quote }}
`,
}

func TestAChartKeepsItsPasswordAndReadsNoOthers(t *testing.T) {
	t.Parallel()
	s, victim := begin(t, west), begin(t, west)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: victim.namespace, Name: "password"}, StringData: map[string]string{"password": "of others"},
	}
	s.must(world.clusters[west].Create(s.ctx, secret))
	chart := s.namespace + "-looking"
	s.publish(chart, lookingChart)
	values := shipper.ChartValues{"other": victim.namespace}
	s.install("web-1", chart, "0.0.1", values, west)
	s.installed("web-1")
	var first, second corev1.Secret
	if !s.find(west, "password", &first) {
		t.Fatal("there is no password")
	}
	var taken corev1.ConfigMap
	s.find(west, "taken", &taken)
	if diff := cmp.Diff(map[string]string{"secret": "{}", "secrets": "{}", "namespace": "{}", "kind": "{}"}, taken.Data); diff != "" {
		t.Errorf("what the chart has found (-want +got):\n%s", diff)
	}

	s.takeOver("web-1", false)
	s.install("web-2", chart, "0.0.1", values, west)
	s.installed("web-2")
	if !s.find(west, "password", &second) || second.Labels[shipper.OwnedByLabel] != "web-2" {
		t.Errorf("the Secret is of %q", second.Labels[shipper.OwnedByLabel])
	}
	if diff := cmp.Diff(first.Data, second.Data); diff != "" || len(first.Data["password"]) == 0 {
		t.Errorf("the password (-of the first Release +of the second):\n%s", diff)
	}
}
