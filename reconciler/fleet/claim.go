// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/retry"
)

// ClaimError means that something in an application cluster is another management cluster's.
type ClaimError struct {
	// Application and Namespace are what is claimed; Application may be empty.
	Application, Namespace string
	// Anchor is the name of the ConfigMap with the claim.
	Anchor string
	// Theirs is the identity of the other management cluster, Ours that of this one.
	Theirs, Ours string

	home string // the namespace of Shipper in this management cluster
}

// Error teaches what to do about it.
func (e *ClaimError) Error() string {
	text := fmt.Sprintf("the Application %q in namespace %q of this cluster is that of the management cluster %q, says "+
		"ConfigMap %q, and this one is %q; use another name or namespace",
		e.Application, e.Namespace, e.Theirs, e.Anchor, e.Ours)
	if !ValidIdentity(e.Theirs) { // no part of a command that a user may copy
		return text
	}
	return fmt.Sprintf("%s, or, if this management cluster replaces that one, give it its id: kubectl -n %s patch "+
		`configmap %s --type=merge -p '{"data":{%q:%q}}'`, text, e.home, shipper.IdentityName, shipper.IdentityKey, e.Theirs)
}

// Classify is ObjectConflict, and Wait: the anchor's event triggers the next pass.
func (e *ClaimError) Classify() (reason string, action retry.Action) {
	return shipper.ObjectConflict, retry.Wait
}

// ValidIdentity reports whether a management cluster may have this id.
func ValidIdentity(id string) bool {
	return len(validation.IsDNS1123Subdomain(id)) == 0
}

// IsAnchor reports whether a ConfigMap is the anchor of an InstallationTarget. What Shipper has written from a user's manifest is none,
// whatever it says: it has the digest of that manifest.
func IsAnchor(cm *corev1.ConfigMap) bool {
	return cm.Data[shipper.AnchorTargetUIDKey] != "" && cm.Annotations[shipper.InstalledDigestAnnotation] == ""
}

// Claim is a *ClaimError when an anchor was written by another management cluster. The original writes
// anchors without an identity: they count as ours.
func (m *Member) Claim(anchor *corev1.ConfigMap) error {
	theirs := anchor.Data[shipper.AnchorIdentityKey]
	if !IsAnchor(anchor) || theirs == "" || theirs == m.Identity {
		return nil
	}
	return &ClaimError{
		Application: anchor.Labels[shipper.AppLabel], Namespace: anchor.Namespace, Anchor: anchor.Name,
		Theirs: theirs, Ours: m.Identity, home: m.home,
	}
}

// Claimed returns a *ClaimError when another management cluster has an Application of that name in a namespace of the
// cluster, as the caches know it. Nothing of the Application may be written there then.
func (m *Member) Claimed(ctx context.Context, namespace, app string) error {
	return m.claimed(ctx, m.Client(), app, client.InNamespace(namespace), client.MatchingFields{ByApp: app})
}

// ClaimedLive is Claimed by what the API server itself says.
func (m *Member) ClaimedLive(ctx context.Context, namespace, app string) error {
	return m.claimed(ctx, m.Live(), app, client.InNamespace(namespace), client.MatchingLabels{shipper.AppLabel: app})
}

// claimed names the first anchor of another management cluster, by name, so that it is always the same.
func (m *Member) claimed(ctx context.Context, reader client.Reader, app string, of ...client.ListOption) error {
	if app == "" {
		return nil
	}
	var list corev1.ConfigMapList
	if err := reader.List(ctx, &list, of...); err != nil {
		return fmt.Errorf("listing the anchors of %s: %w", app, err)
	}
	var first *corev1.ConfigMap
	for i := range list.Items {
		cm := &list.Items[i]
		if m.Claim(cm) != nil && (first == nil || cm.Name < first.Name) {
			first = cm
		}
	}
	if first == nil {
		return nil
	}
	return m.Claim(first)
}

// ClaimChanged reports whether an event is that of an anchor of another management cluster that appeared, is gone, or changed hands.
func (f *Fleet) ClaimChanged(e Event) bool { return f.claimant(e.Old) != f.claimant(e.New) }

// claimant is the other management cluster that an object is an anchor of, if any.
func (f *Fleet) claimant(object client.Object) string {
	cm, ok := object.(*corev1.ConfigMap)
	if !ok {
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	theirs := cm.Data[shipper.AnchorIdentityKey]
	if !IsAnchor(cm) || theirs == f.identity.id {
		return ""
	}
	return theirs
}
