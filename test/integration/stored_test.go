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
