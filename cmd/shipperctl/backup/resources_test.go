// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// digest is one of 64 times a letter.
func digest(letter string) string { return strings.Repeat(letter, 64) }

// content is a part of the ResourceSnapshot with the digest of a letter.
func content(t *testing.T, letter string, parts, part, secrets int) object {
	t.Helper()
	name := shipper.ResourceSnapshotName(digest(letter), int32(part))
	o := parse(t, "apiVersion: shipper.booking.com/v1alpha1\nkind: ResourceSnapshot\nmetadata: {namespace: a, name: %s, uid: %s-uid}\n"+
		"spec: {digest: %s, objects: 1, bytes: 9, parts: %d, part: %d, secrets: %d, data: '{}'}",
		name, name, digest(letter), parts, part, secrets)
	if part > 1 {
		owner := content(t, letter, parts, 1, secrets)
		setOwner(o, o, &owner)
	}
	return *o
}

// contentSecret is the Secret with content of a letter.
func contentSecret(t *testing.T, letter, secretType string) *object {
	t.Helper()
	head := content(t, letter, 1, 1, 1)
	o := parse(t, "apiVersion: v1\nkind: Secret\nmetadata: {namespace: a, name: %s, uid: s-uid}\ntype: %s\nimmutable: true\n"+
		"data: {part: cGFydA==, data: c2VjcmV0}", head.GetName(), secretType)
	setOwner(o, o, &head)
	return o
}

// resourceContents has an Application with Releases of content b, c, and d, which is lost, and e, which is not whole.
func resourceContents(t *testing.T) contents {
	t.Helper()
	release := func(name, letter string) object {
		return *parse(t, "apiVersion: shipper.booking.com/v1alpha1\nkind: Release\nmetadata: {namespace: a, name: %s, uid: %s-uid, "+
			"labels: {shipper-app: net}}\nspec: {environment: {resourcesDigest: %s}}", name, name, digest(letter))
	}
	return contents{
		applications: []object{*parse(t, "apiVersion: shipper.booking.com/v1alpha1\nkind: Application\nmetadata: {namespace: a, name: net}")},
		releases:     []object{release("net-0", "b"), release("net-1", "c"), release("net-2", "d"), release("net-3", "e"), release("net-4", "c")},
		snapshots: []object{
			content(t, "b", 2, 1, 1), content(t, "b", 2, 2, 1), content(t, "c", 1, 1, 0), content(t, "e", 2, 1, 0),
			content(t, "f", 1, 1, 0), // of no Application in the backup
		},
		envelopes: []object{*of(t, "Envelope", "a", "network", ", managedFields: [{manager: kubectl}]")},
	}
}

func described(b Backup) []string {
	var out []string
	for _, e := range b {
		for _, s := range e.slots() {
			if s.have != nil {
				out = append(out, describe(s.have))
			}
		}
	}
	return out
}

func TestContentOfReleasesIsSaved(t *testing.T) {
	snapshot := func(letter string, part int32) string {
		return fmt.Sprintf("resource snapshot %q", "a/"+shipper.ResourceSnapshotName(digest(letter), part))
	}
	lost := []string{
		snapshot("d", 1) + `, the content of release "a/net-2", is not there: it is left out`,
		snapshot("e", 1) + " is not whole: it is left out",
	}
	apart := snapshot("b", 1) + " is saved without its Secrets: with --include-secrets they are saved, too"
	secret := contentSecret(t, "b", shipper.ResourcesSecretType)
	for name, tc := range map[string]struct {
		secrets     map[types.NamespacedName]*object
		want, notes []string
	}{
		"without Secrets": {nil, []string{snapshot("b", 1), snapshot("b", 2), snapshot("c", 1)}, append([]string{apart}, lost...)},
		"with Secrets": {
			map[types.NamespacedName]*object{key(secret): secret},
			[]string{snapshot("b", 1), snapshot("b", 2), describe(secret), snapshot("c", 1)}, lost,
		},
		"with a Secret that is lost": {
			map[types.NamespacedName]*object{},
			[]string{snapshot("c", 1)}, append([]string{snapshot("b", 1) + " is not whole: it is left out"}, lost...),
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := resourceContents(t)
			f.contentSecrets = tc.secrets
			b, notes := collect(f)
			if diff := cmp.Diff(append([]string{`application "a/net"`, `envelope "a/network"`}, tc.want...), described(b)); diff != "" {
				t.Errorf("the backup (-want +got)\n%s", diff)
			}
			slices.Sort(tc.notes)
			if diff := cmp.Diff(tc.notes, notes); diff != "" {
				t.Errorf("notes (-want +got)\n%s", diff)
			}
		})
	}
}

func TestSecretsWithContentAreReadOnRequest(t *testing.T) {
	head := content(t, "b", 1, 1, 1)
	for name, tc := range map[string]struct {
		secretType string
		wanted     bool
		want       int
	}{
		"not asked for":            {shipper.ResourcesSecretType, false, 0},
		"asked for":                {shipper.ResourcesSecretType, true, 1},
		"another one of that name": {"Opaque", true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithObjects(head.DeepCopy(), contentSecret(t, "b", tc.secretType)).Build()
			f, err := read(t.Context(), served{c}, selection{secrets: tc.wanted})
			if err != nil {
				t.Fatal(err)
			}
			if len(f.contentSecrets) != tc.want || (f.contentSecrets != nil) != tc.wanted {
				t.Errorf("read %v", f.contentSecrets)
			}
		})
	}
}

// served is a client that lists nothing of kinds that it does not know, as the fake one does not.
type served struct{ client.Client }

func (s served) List(ctx context.Context, l client.ObjectList, options ...client.ListOption) error {
	if l.GetObjectKind().GroupVersionKind().Kind != contentKind.Kind+"List" {
		return nil
	}
	return s.Client.List(ctx, l, options...)
}

// TestContentIsRestored with the head before what it owns, and without the owners that are lost.
func TestContentIsRestored(t *testing.T) {
	f := resourceContents(t)
	f.snapshots[0].SetOwnerReferences(f.snapshots[1].GetOwnerReferences()) // any: Releases of the lost management cluster
	secret := contentSecret(t, "b", shipper.ResourcesSecretType)
	f.contentSecrets = map[types.NamespacedName]*object{key(secret): secret}
	b, _ := collect(f)
	c := fake.NewClientBuilder().Build()
	r := &restorer{
		client: c, out: io.Discard, progress: io.Discard, clock: clocktesting.NewFakePassiveClock(time.Now()), namespaces: map[string]bool{},
	}
	saved := slices.DeleteFunc(slices.Clone(b), func(e Entry) bool { return e.Application != nil })
	if err := r.restore(t.Context(), saved); err != nil {
		t.Fatal(err)
	}
	for _, e := range saved {
		for _, s := range e.slots() {
			if s.have == nil {
				continue
			}
			live, err := get(t.Context(), c, s.kind, key(s.have))
			if err != nil || live == nil {
				t.Errorf("%s was not restored: %v", describe(s.have), err)
				continue
			}
			owners := 0
			if s.key == "resource_parts" || s.key == "resource_secrets" {
				owners = 1
			}
			if got := live.GetOwnerReferences(); len(got) != owners || owners == 1 && got[0].Name != e.ResourceSnapshot.GetName() {
				t.Errorf("%s belongs to %v", describe(live), got)
			}
			if diff := cmp.Diff(s.have.Object["spec"], live.Object["spec"]); diff != "" {
				t.Errorf("%s (-saved +restored)\n%s", describe(live), diff)
			}
			if diff := cmp.Diff(s.have.Object["data"], live.Object["data"]); diff != "" {
				t.Errorf("%s (-saved +restored)\n%s", describe(live), diff)
			}
		}
	}
}

func TestSecretsWithContentAreNotShown(t *testing.T) {
	head := content(t, "b", 1, 1, 1)
	b := Backup{{ResourceSnapshot: &head, ResourceSecrets: []*object{contentSecret(t, "b", shipper.ResourcesSecretType)}}}
	shown, err := b.redacted().Marshal(cli.YAML)
	if err != nil || strings.Contains(string(shown), "c2VjcmV0") {
		t.Errorf("%v\n%s", err, shown)
	}
	if kept, _ := b.Marshal(cli.YAML); !strings.Contains(string(kept), "c2VjcmV0") {
		t.Errorf("what is shown was taken out of the backup:\n%s", kept)
	}
}
