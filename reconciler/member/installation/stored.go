// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/duplicates"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/member/applyset"
	"shipper.dev/shipper/reconciler/retry"
)

// storedType is the type of the Secrets with what charts have rendered to. Helm stores it in Secrets, too: Secrets may be among it.
const storedType = "shipper.booking.com/rendering"

// Data keys of these Secrets. Parts after the first have their bytes alone.
const (
	storedFromKey   = "RenderedFrom" // the fingerprint of what it was rendered from, whatever the cluster's version
	storedPartsKey  = "Parts"        // how many Secrets have it
	storedDigestKey = "Digest"       // sha256 (hex) of all parts
	storedFoundKey  = "Found"        // "true" if the chart has looked up what may be secret
	storedBytesKey  = "Objects"      // JSON, compressed by gzip
)

const (
	// partBytes are in one Secret, of the 1 MiB that it may have.
	partBytes = 900 << 10
	// mostParts bound what one Release takes in shipper-system, where no quota of its namespace counts.
	mostParts = 8
	// mostListed are the objects that a chart may look up at once.
	mostListed = 500
	// listPage are those that are read at once, each of which may have more than 1 MiB.
	listPage = 25
	// mostStoredBytes bound what is stored and read, as 32 MiB bound an archive.
	mostStoredBytes = 64 << 20
)

// storedObject is an object as it is to be written, and the digest that it was given.
type storedObject struct {
	Digest string         `json:"digest"`
	Object map[string]any `json:"object"`
	// Given has the fields of the object that are others as the chart rendered it by Application, null for those that it does not have
	// there. Null for copies, and where that was too large.
	Given map[string]any `json:"given"`
}

// storedRendering is what a target was rendered to in a cluster. It is in shipper-system of the cluster, where no tenant writes: what it
// says is written with Shipper's rights.
type storedRendering struct {
	resourceVersion, from string
	found                 bool
	objects               []wanted
}

// storedKey is where it is.
func storedKey(m *fleet.Member, it *shipper.InstallationTarget, part int) types.NamespacedName {
	name := shipper.RenderingName(m.Identity, it.Namespace, it.Name)
	if part > 0 {
		name += "-" + strconv.Itoa(part+1)
	}
	return types.NamespacedName{Namespace: shipper.SystemNamespace, Name: name}
}

// storedOrRendered are what the target consists of in the cluster: what it was rendered to before, or else what it renders to now, which
// is stored before any of it is written. A chart may render to something else each time: passwords, certificates, the time.
func (i *installer) storedOrRendered(ctx context.Context, source Source, t render.Target) ([]wanted, error) {
	t.KubeVersion, t.APIVersions = "", nil // another version of the cluster changes nothing that is installed
	from, err := source.fingerprint(t)
	if err != nil {
		return nil, err
	}
	if i.stored, err = readStored(ctx, i.member, i.it); err != nil {
		return nil, err
	}
	if i.stored != nil && i.stored.from == from && i.stored.applicable() {
		i.rendering.sources.found = i.stored.found
		return i.stored.objects, nil
	}
	objects, err := i.restoredOrRendered(ctx, source, t)
	if err == nil {
		i.storeAs = from
	}
	return objects, err
}

// applicable reports whether server-side apply takes all objects. A version of Shipper that did not remove duplicates in their lists has
// stored them, and could not install them.
func (s *storedRendering) applicable() bool {
	var objects []unstructured.Unstructured
	for _, w := range s.objects {
		if w.hook == nil {
			objects = append(objects, *w.content)
		}
	}
	_, found := duplicates.Remove(objects)
	return len(found) == 0
}

// restoredOrRendered are what the target consists of in the cluster when nothing is stored of it: a Release that goes back to another
// takes what that one was rendered to. t lacks the version of the cluster.
func (i *installer) restoredOrRendered(ctx context.Context, source Source, t render.Target) ([]wanted, error) {
	goal, err := i.goal(ctx, source)
	if err != nil {
		return nil, err
	}
	if goal != nil {
		t.InUse = goal.inUse(t.App)
		i.rendering.sources.found = goal.found
		return i.rendering.prepare(ctx, t, nil, func() (render.Manifest, error) { return goal.manifest(), nil })
	}
	if t.InUse, err = i.inUse(ctx, t.App); err != nil {
		return nil, err
	}
	t.KubeVersion, t.APIVersions = i.member.KubeVersion(), i.member.APIVersions()
	if t.Revision, err = i.revision(ctx); err != nil {
		return nil, err
	}
	return i.rendering.render(ctx, source, t, i.find)
}

// revision is 1 for the first Release of the Application in the cluster, and 2 for every later one.
func (i *installer) revision(ctx context.Context) (int, error) {
	of := client.MatchingLabels{shipper.AppLabel: i.it.Labels[shipper.AppLabel]}
	others, err := anchorsBut(ctx, i.member.Client(), i.it, client.InNamespace(i.it.Namespace), of)
	if err != nil || len(others) == 0 {
		return 1, err
	}
	return 2, nil
}

// readStored returns nil when nothing is stored, or not all of it.
func readStored(ctx context.Context, m *fleet.Member, it *shipper.InstallationTarget) (*storedRendering, error) {
	var first corev1.Secret
	var all bytes.Buffer
	parts := 1
	for n := 0; n < parts; n++ {
		var secret corev1.Secret
		key := storedKey(m, it, n)
		err := m.Live().Get(ctx, key, &secret)
		if apierrors.IsNotFound(err) && n == 0 {
			return nil, nil
		}
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading Secret %s: %w", key, err)
		}
		if n == 0 {
			first = secret
			parts, _ = strconv.Atoi(string(first.Data[storedPartsKey]))
		}
		all.Write(secret.Data[storedBytesKey])
	}
	out := &storedRendering{resourceVersion: first.ResourceVersion}
	sum := sha256.Sum256(all.Bytes())
	if hex.EncodeToString(sum[:]) != string(first.Data[storedDigestKey]) {
		return out, nil // a process ended before it had written all parts, and nothing else
	}
	objects, err := unpack(all.Bytes())
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", storedKey(m, it, 0), err)
	}
	out.from, out.found, out.objects = string(first.Data[storedFromKey]), string(first.Data[storedFoundKey]) == "true", objects
	return out, nil
}

// store stores what was rendered in this pass. Where another process has been faster, the next pass finds what that one has stored.
func (i *installer) store(ctx context.Context) error {
	if i.storeAs == "" {
		return nil
	}
	raw, err := packAll(i.all)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(raw)
	parts := slices.Collect(slices.Chunk(raw, partBytes))
	if len(parts) > mostParts {
		return broken("what the chart renders to takes more than the %d MiB that can be stored, compressed", mostParts*partBytes>>20)
	}
	first := i.storedSecret(0, map[string][]byte{
		storedFromKey: []byte(i.storeAs), storedPartsKey: []byte(strconv.Itoa(len(parts))),
		storedDigestKey: []byte(hex.EncodeToString(sum[:])), storedBytesKey: parts[0],
		storedFoundKey: []byte(strconv.FormatBool(i.rendering.sources.found)),
	})
	if i.stored == nil {
		err = i.member.Client().Create(ctx, first, client.FieldOwner(shipper.FieldOwner))
	} else {
		first.SetResourceVersion(i.stored.resourceVersion)
		err = applyset.Apply(ctx, i.member.Client(), first, client.ForceOwnership)
	}
	if apierrors.IsNotFound(err) {
		return &problem{shipper.NamespaceMissing, retry.Recheck, fmt.Sprintf("the cluster has no namespace %q, where Shipper stores "+
			"what a chart has rendered to before it is written; create it there", shipper.SystemNamespace)}
	}
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		return &problem{shipper.InProgress, retry.Retry, "another process has stored what the chart renders to"}
	}
	if err != nil {
		return fmt.Errorf("writing Secret %s/%s: %w", first.GetNamespace(), first.GetName(), err)
	}
	for n, part := range parts[1:] {
		secret := i.storedSecret(n+1, map[string][]byte{storedBytesKey: part})
		secret.SetOwnerReferences([]metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Secret", Name: first.GetName(), UID: first.GetUID()}})
		if err := applyset.Apply(ctx, i.member.Client(), secret, client.ForceOwnership); err != nil {
			return fmt.Errorf("writing Secret %s/%s: %w", secret.GetNamespace(), secret.GetName(), err)
		}
	}
	return nil
}

// find finds what a chart looks up in its own namespace.
func (i *installer) find(ctx context.Context, q render.Query) (map[string]any, error) {
	gvk := schema.FromAPIVersionAndKind(q.APIVersion, q.Kind)
	mapping, err := i.member.Mapping(gvk)
	if meta.IsNoMatchError(err) || err == nil && mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if q.Name == "" {
		return listed(ctx, i.member.Live(), gvk, i.it.Namespace)
	}
	var object unstructured.Unstructured
	object.SetGroupVersionKind(gvk)
	err = i.member.Live().Get(ctx, client.ObjectKey{Namespace: i.it.Namespace, Name: q.Name}, &object)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return object.Object, err
}

// listed are the first objects of a kind in a namespace, by pages: a tenant may have many large ones. What is too large for a chart is
// read no further.
func listed(ctx context.Context, live client.Reader, gvk schema.GroupVersionKind, namespace string) (map[string]any, error) {
	var all, page unstructured.UnstructuredList
	size := int64(0)
	for {
		page = unstructured.UnstructuredList{}
		page.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		err := live.List(ctx, &page, client.InNamespace(namespace), client.Limit(listPage), client.Continue(all.GetContinue()))
		if err != nil {
			return nil, err
		}
		page.Items = page.Items[:min(len(page.Items), mostListed-len(all.Items))]
		for n := range page.Items {
			size += render.Weigh(page.Items[n].Object)
		}
		all.Object, all.Items = page.Object, append(all.Items, page.Items...)
		if page.GetContinue() == "" || len(all.Items) >= mostListed || size > render.MostFound {
			return all.UnstructuredContent(), nil
		}
	}
}

func (i *installer) storedSecret(part int, data map[string][]byte) *unstructured.Unstructured {
	key, encoded := storedKey(i.member, i.it, part), map[string]any{}
	for name, value := range data {
		encoded[name] = base64.StdEncoding.EncodeToString(value)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Secret",
		"type":       storedType,
		"metadata": map[string]any{
			"namespace": key.Namespace, "name": key.Name,
			"annotations": map[string]any{
				shipper.PlacedOwnerAnnotation: ownerOf(i.it), shipper.ReleaseLabel: i.it.Name,
			},
		},
		"data": encoded,
	}}
}

// forgetStored deletes what is stored of a target that is gone from a cluster. Other parts go with the first.
func forgetStored(ctx context.Context, m *fleet.Member, it *shipper.InstallationTarget) error {
	key := storedKey(m, it, 0)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := m.Client().Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Secret %s: %w", key, err)
	}
	return nil
}
