// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/duplicates"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/reconciler/member/applyset"
)

// fromContent makes an object of a map.
func fromContent(content map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: content}
}

// digestBytes is how much of a sha256 identifies a manifest. The anchor has it for each object.
const digestBytes = 16

// load reads the content, in the order of writes, with digests of its objects. It is read once in a pass.
func (p *pass) load(ctx context.Context) ([]*item, error) {
	if p.items != nil {
		return p.items, nil
	}
	content, err := p.worker.Content.Content(ctx, p.Target.Namespace, p.spec.Snapshot)
	if err != nil {
		return nil, fmt.Errorf("reading the content %s: %w", p.spec.Snapshot, err)
	}
	if content, err = overridden(ctx, content, p.Overrides); err != nil {
		return nil, err
	}
	objects.SortForApply(content)
	applicable := withoutDuplicates(content)
	out := make([]*item, 0, len(content))
	for i := range content {
		o := &content[i]
		text, err := objects.Canonical(o)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(text)
		out = append(out, &item{object: &applicable[i], want: entry{
			APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(),
			Digest: hex.EncodeToString(sum[:digestBytes]),
		}})
	}
	p.items = out
	return out, nil
}

// withoutDuplicates are objects as server-side apply takes them. Those that it takes in no form stay, and the API server says why.
func withoutDuplicates(content []unstructured.Unstructured) []unstructured.Unstructured {
	out, found := duplicates.Remove(content)
	for _, f := range found {
		if f.Refused {
			out[f.Object] = content[f.Object]
		}
	}
	return out
}

// observe reads what is there of an object, and decides.
func (p *pass) observe(ctx context.Context, s *item) {
	s.known, s.failed, s.unserved, s.whose, s.maker = p.anchor.find(s.want.key()), nil, false, "", ""
	_, err := p.Cluster.Mapping(s.want.gvk())
	if meta.IsNoMatchError(err) {
		s.unserved, s.action = true, await
		return
	}
	if err == nil {
		s.live, err = p.look(ctx, s)
	}
	if err == nil && s.live != nil && !isListed(s.known, s.live) {
		s.maker, err = p.maker(ctx, s.want.key(), s.live)
	}
	if err == nil && s.live != nil && s.maker == "" && !isOurs(s.known, p.rules.owner, s.live) {
		s.whose, err = p.otherOwner(ctx, s.live, s.want.key())
	}
	if err != nil {
		s.failed = err
		return
	}
	s.action = p.rules.decide(s)
}

// look reads the metadata of an object: from the cache; and from the API server if it is not there, because it may not be ours, or if
// the cache may be older than what the anchor says. It returns nil when there is none.
func (p *pass) look(ctx context.Context, s *item) (*metav1.PartialObjectMetadata, error) {
	live, err := p.Cluster.Metadata(ctx, s.want.gvk(), s.want.name())
	late := err == nil && s.known != nil && !s.known.Pending && s.known.Digest == s.want.Digest &&
		!marked(p.rules.owner, p.rules.app, s.want.Digest, live)
	if isGone(err) || late {
		live, err = p.Cluster.LiveMetadata(ctx, s.want.gvk(), s.want.name())
	}
	if isGone(err) {
		return nil, nil
	}
	return live, err
}

// maker names the object that another one was made for or belongs to; empty if there is none. Shipper places objects without owners.
func (p *pass) maker(ctx context.Context, key objects.Key, live *metav1.PartialObjectMetadata) (string, error) {
	made, err := applyset.Maker(ctx, p.Cluster.Live(), key.GroupKind(), live)
	if owners := live.OwnerReferences; made.Kind == "" && len(owners) > 0 {
		made = applyset.Made{Kind: owners[0].Kind, Name: owners[0].Name}
	}
	if err != nil || made.Kind == "" {
		return "", err
	}
	return made.String(), nil
}

// otherOwner names the other Application that an object belongs to; empty if there is none. The annotation alone proves nothing: with
// removal None objects outlast their Application and its anchor.
func (p *pass) otherOwner(ctx context.Context, live *metav1.PartialObjectMetadata, key objects.Key) (string, error) {
	if app := live.Labels[shipper.AppLabel]; app != "" && live.Labels[shipper.OwnedByLabel] != "" {
		return fmt.Sprintf("the Application %q, whose chart has it", app), nil
	}
	owner := live.Annotations[shipper.PlacedOwnerAnnotation]
	namespace, app, found := strings.Cut(owner, "/")
	if !found || owner == p.rules.owner {
		return "", nil
	}
	at := types.NamespacedName{Namespace: shipper.SystemNamespace, Name: shipper.PlacedAnchorName(namespace, app)}
	var cm corev1.ConfigMap
	if err := p.Cluster.Live().Get(ctx, at, &cm); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	if cm.Annotations[shipper.PlacedOwnerAnnotation] != owner {
		return "", nil
	}
	other := Task{Target: &shipper.InstallationTarget{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Labels: map[string]string{shipper.AppLabel: app},
	}}, Cluster: p.Cluster}
	a, err := other.anchorOf(&cm)
	if err != nil || a.find(key) == nil {
		return "", err
	}
	return fmt.Sprintf("the Application %q in namespace %q", app, namespace), nil
}

// intact reports whether everything that the anchor lists is in the cluster as it was written, as caches know it.
func (p *pass) intact(ctx context.Context) (bool, error) {
	errs := make([]error, len(p.anchor.inventory))
	good := make([]bool, len(p.anchor.inventory))
	each(p.worker.Parallel, len(p.anchor.inventory), func(i int) {
		e := p.anchor.inventory[i]
		live, err := p.Cluster.Metadata(ctx, e.gvk(), e.name())
		switch {
		case isGone(err):
		case err != nil:
			errs[i] = err
		default:
			good[i] = !e.Pending && live.DeletionTimestamp == nil && live.UID == e.UID &&
				marked(p.rules.owner, p.rules.app, e.Digest, live)
		}
	})
	for i := range errs {
		if errs[i] != nil || !good[i] {
			return false, errs[i]
		}
	}
	return true, nil
}

// defines are the kinds that CustomResourceDefinitions of the content make known.
func defines(all []*item) map[string]bool {
	out := map[string]bool{}
	for _, s := range all {
		if isDefinition(s.want.key()) {
			group, _, _ := unstructured.NestedString(s.object.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(s.object.Object, "spec", "names", "kind")
			out[kind+"."+group] = true
		}
	}
	return out
}
