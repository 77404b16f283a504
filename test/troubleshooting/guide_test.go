// SPDX-License-Identifier: Apache-2.0

package troubleshooting

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// guideRepository is where the guide's charts are; the test has them elsewhere.
const guideRepository = "https://charts.example.com"

var fenced = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")

// TestManifestsOfTheUserGuideApply rehearses every manifest of the guide on the server, through the gate.
func TestManifestsOfTheUserGuideApply(t *testing.T) { manifestsApply(t, "../../docs/user-guide.md", 5) }

func TestManifestsOfTheBlocksPageApply(t *testing.T) { manifestsApply(t, "../../docs/blocks.md", 3) }

// manifestsApply rehearses the manifests of a document, which has at least some.
func manifestsApply(t *testing.T, document string, least int) {
	t.Helper()
	u := begin(t)
	text, err := os.ReadFile(document)
	u.Must("reading the guide", err)
	found := fenced.FindAllSubmatch(text, -1)
	if n := strings.Count(string(text), "```yaml"); len(found) != n || n < least {
		t.Fatalf("%d blocks of YAML were found, and %d begin", len(found), n)
	}
	for i, match := range found {
		for j, document := range strings.Split(string(match[1]), "\n---\n") {
			document = strings.ReplaceAll(document, guideRepository, world.Charts.URL)
			object := &unstructured.Unstructured{}
			u.Must("reading YAML:\n"+document, yaml.UnmarshalStrict([]byte(document), &object.Object))
			if object.GetKind() == "" {
				t.Errorf("block %d of the guide is not a manifest; fence it without a language:\n%s", i+1, document)
				continue
			}
			t.Run(fmt.Sprintf("block %d.%d, %s %s", i+1, j+1, object.GetKind(), object.GetName()), func(t *testing.T) {
				u.on(t).rehearses(object, document)
			})
		}
	}
}

// rehearses applies a manifest by a server-side dry run. What it names must exist: namespaces, blocks it overrides, and what it takes
// values from.
func (u *user) rehearses(object *unstructured.Unstructured, document string) {
	if ns := object.GetNamespace(); ns != "" && ns != shipper.GlobalBlocksNamespace {
		u.has(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
	}
	overridden, err := block.ParseOverrides(object.GetAnnotations()[shipper.RolloutBlockOverrideAnnotation])
	u.Must("reading overrides", err)
	for _, name := range overridden {
		u.blocked(name)
	}
	u.keepsValues(object)
	args := []string{"apply", "--dry-run=server", "--validate=strict", "-f", "-", "--kubeconfig", world.Fleet.Management.Kubeconfig}
	if object.GetNamespace() == "" && object.GetKind() != "Cluster" {
		args = append(args, "-n", u.Namespace)
	}
	out, err := u.with(u.Ctx, document, args...)
	if err != nil {
		u.Errorf("%v\n%s\n%s", err, out, document)
	}
}

// keepsValues has what an Application takes values from, and lets Shipper read it.
func (u *user) keepsValues(object *unstructured.Unstructured) {
	u.Helper()
	if object.GetKind() != "Application" {
		return
	}
	app := &shipper.Application{}
	u.Must("reading an Application", runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, app))
	for _, source := range app.Spec.Template.ValuesFrom {
		if ref := source.ConfigMapKeyRef; ref != nil {
			u.has(&corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: u.Namespace, Name: ref.Name},
				Data:       map[string]string{cmp.Or(ref.Key, "values.yaml"): "{}"},
			})
		}
		if ref := source.SecretKeyRef; ref != nil {
			u.has(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: u.Namespace, Name: ref.Name},
				StringData: map[string]string{cmp.Or(ref.Key, "values.yaml"): "{}"},
			})
		}
	}
	if len(app.Spec.Template.ValuesFrom) == 0 {
		return
	}
	u.has(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: u.Namespace, Name: shipper.ValuesKeeper},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: shipper.ValuesKeeper},
		Subjects: []rbacv1.Subject{{
			Kind: rbacv1.ServiceAccountKind, Namespace: shipper.SystemNamespace, Name: shipper.ManagementServiceAccount,
		}},
	})
	u.Eventually("whether Shipper may read and keep Secrets", "true", func() (string, error) {
		for _, verb := range []string{"get", "create"} {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User:               serviceaccount.MakeUsername(shipper.SystemNamespace, shipper.ManagementServiceAccount),
				ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: u.Namespace, Verb: verb, Resource: "secrets"},
			}}
			if err := world.Management.Create(u.Ctx, review); err != nil || !review.Status.Allowed {
				return "false", err
			}
		}
		return "true", nil
	})
}

// blocked has a RolloutBlock for the time of the test.
func (u *user) blocked(name types.NamespacedName) {
	u.has(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name.Namespace}})
	u.has(&shipper.RolloutBlock{
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name},
		Spec: shipper.RolloutBlockSpec{
			Message: "the guide speaks of it", Author: shipper.RolloutBlockAuthor{Type: "user", Name: "jdoe"},
		},
	})
}

// has creates an object unless it is there, and deletes a block after the test.
func (u *user) has(object client.Object) {
	u.Helper()
	err := world.Management.Create(u.Ctx, object)
	u.Must("creating what the guide speaks of", client.IgnoreAlreadyExists(err))
	if _, ok := object.(*shipper.RolloutBlock); ok {
		u.Cleanup(func() {
			if err := world.Management.Delete(context.Background(), object); err != nil {
				u.Error(err)
			}
			u.Eventually("a rehearsed change without the block", "admitted", u.probe)
		})
	}
}

// probe reports whether a change is admitted in the user's namespace.
func (u *user) probe() (string, error) {
	out, err := u.with(context.Background(), u.application(world.Charts.URL, "0.0.1", "stable"), "apply", "--dry-run=server", "-f", "-",
		"--kubeconfig", world.Fleet.Management.Kubeconfig, "-n", u.Namespace)
	if err != nil {
		return out, nil
	}
	return "admitted", nil
}
