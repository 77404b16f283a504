// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/member/applyset"
)

// Data keys of anchors, beside those of the target's UID and of the identity. The inventory is where anchors of charts have it, so that no
// chart takes an object without a namespace that it lists.
const (
	inventoryKey = "Inventory"
	// releaseKey holds the name of the Release that wrote last.
	releaseKey = "Release"
	// placedKey holds the digest of the content that is in the cluster as a whole; empty while it is being placed.
	placedKey = "Placed"
)

// entry is one object of an Application in a cluster.
type entry struct {
	APIVersion string    `json:"apiVersion,omitempty"`
	Kind       string    `json:"kind,omitempty"`
	Namespace  string    `json:"namespace,omitempty"`
	Name       string    `json:"name"`
	UID        types.UID `json:"uid,omitempty"`
	Digest     string    `json:"digest"`
	// Pending is set from before the object is written until it has been.
	Pending bool `json:"pending,omitempty"`
	// At is when it was written, in seconds since 1970.
	At int64 `json:"at,omitempty"`
}

func (e entry) gvk() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(e.APIVersion, e.Kind)
}

func (e entry) name() types.NamespacedName {
	return types.NamespacedName{Namespace: e.Namespace, Name: e.Name}
}

func (e entry) key() objects.Key {
	return objects.Key{Group: e.gvk().Group, Kind: e.Kind, Namespace: e.Namespace, Name: e.Name}
}

// goes reports whether an object in a cluster is the one that an entry lists, as it was written.
func (e entry) goes(owner string, live *metav1.PartialObjectMetadata) bool {
	return isOurs(&e, owner, live) && (e.UID == "" || e.UID == live.UID) &&
		(e.Pending || live.Annotations[shipper.InstalledDigestAnnotation] == e.Digest)
}

// encodeInventory leaves out version, kind and namespace where they are those of the entry before, so that 4,000 entries fit into a
// ConfigMap. Entries without a namespace are whole: reconcilers of charts look for these.
func encodeInventory(list []entry) (string, error) {
	out := slices.Clone(list)
	for i := 1; i < len(list); i++ {
		if e, last := list[i], list[i-1]; e.Namespace != "" && e.Namespace == last.Namespace && e.gvk() == last.gvk() {
			out[i].APIVersion, out[i].Kind, out[i].Namespace = "", "", ""
		}
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return "", fmt.Errorf("writing the inventory: %w", err)
	}
	return string(raw), nil
}

// decodeInventory is the reverse of encodeInventory.
func decodeInventory(text string) ([]entry, error) {
	var out []entry
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return nil, fmt.Errorf("reading the inventory: %w", err)
	}
	for i := range out {
		if out[i].Kind != "" {
			continue
		}
		if i == 0 {
			return nil, fmt.Errorf("reading the inventory: the first entry has no kind")
		}
		out[i].APIVersion, out[i].Kind, out[i].Namespace = out[i-1].APIVersion, out[i-1].Kind, out[i-1].Namespace
	}
	return out, nil
}

// indexOf is where an inventory has its objects.
func indexOf(inventory []entry) map[objects.Key]int {
	out := make(map[objects.Key]int, len(inventory))
	for i, e := range inventory {
		out[e.key()] = i
	}
	return out
}

// anchor is the ConfigMap that lists what an Application has in a cluster.
type anchor struct {
	applyset.Version

	deleting bool
	// claim is set when it is another management cluster's.
	claim error

	targetUID, identity, release, placed string
	inventory                            []entry
	// index is where inventory has an object.
	index map[objects.Key]int
}

// anchorKey is where the anchor of an Application is. No tenant may write there.
func anchorKey(it *shipper.InstallationTarget) types.NamespacedName {
	name := shipper.PlacedAnchorName(it.Namespace, it.Labels[shipper.AppLabel])
	return types.NamespacedName{Namespace: shipper.SystemNamespace, Name: name}
}

// readAnchor returns nil when there is none.
func (t Task) readAnchor(ctx context.Context, from client.Reader) (*anchor, error) {
	cm, err := applyset.Read(ctx, from, anchorKey(t.Target))
	if cm == nil || err != nil {
		return nil, err
	}
	return t.anchorOf(cm)
}

// anchorOf reads an anchor.
func (t Task) anchorOf(cm *corev1.ConfigMap) (*anchor, error) {
	key := anchorKey(t.Target)
	if owner := cm.Annotations[shipper.PlacedOwnerAnnotation]; !fleet.IsAnchor(cm) || owner != ownerOf(t.Target) {
		return nil, conflict("ConfigMap %s is not that of this Application, says its annotation %s: %q, and its name is needed for the anchor; "+
			"give the Application another name", key, shipper.PlacedOwnerAnnotation, owner)
	}
	out := &anchor{
		Version: applyset.VersionOf(cm), deleting: cm.DeletionTimestamp != nil,
		targetUID: cm.Data[shipper.AnchorTargetUIDKey], identity: cm.Data[shipper.AnchorIdentityKey],
		release: cm.Data[releaseKey], placed: cm.Data[placedKey],
	}
	inventory, err := decodeInventory(cm.Data[inventoryKey])
	if out.inventory = inventory; err != nil {
		out.placed = "" // it is made again
	}
	out.index = indexOf(out.inventory)
	claimed := cm.DeepCopy()
	claimed.Namespace = t.Target.Namespace // the message names the Application, which has the target's
	out.claim = t.Cluster.Claim(claimed)
	return out, nil
}

// by is an anchor that a target writes.
func (t Task) by(inventory []entry, placed string) *anchor {
	return &anchor{
		targetUID: string(t.Target.UID), identity: t.Identity, release: t.Target.Name, placed: placed, inventory: inventory,
	}
}

// says reports whether the anchor says what want does.
func (a *anchor) says(want *anchor) bool {
	return a != nil && a.targetUID == want.targetUID && a.identity == want.identity && a.release == want.release &&
		a.placed == want.placed && slices.Equal(a.inventory, want.inventory)
}

// find is the entry of an object; nil when there is none.
func (a *anchor) find(key objects.Key) *entry {
	if a == nil {
		return nil
	}
	if i, found := a.index[key]; found {
		return &a.inventory[i]
	}
	return nil
}

// writeAnchor makes the anchor, which now is as the API server itself showed it, say what want does.
func (t Task) writeAnchor(ctx context.Context, now, want *anchor) (*anchor, error) {
	if now.says(want) {
		return now, nil
	}
	inventory, err := encodeInventory(want.inventory)
	if err != nil {
		return nil, err
	}
	list := applyset.List{
		NamespacedName: anchorKey(t.Target),
		Labels:         map[string]string{shipper.AppLabel: t.Target.Labels[shipper.AppLabel]},
		Annotations:    map[string]string{shipper.PlacedOwnerAnnotation: ownerOf(t.Target)},
		Data: map[string]string{
			shipper.AnchorTargetUIDKey: want.targetUID, shipper.AnchorIdentityKey: want.identity,
			releaseKey: want.release, placedKey: want.placed, inventoryKey: inventory,
		},
	}
	out := *want
	out.index = indexOf(out.inventory)
	if now != nil {
		out.Version = now.Version
	}
	if out.Version, err = list.Write(ctx, t.Cluster.Client(), out.Version); err != nil {
		return nil, err
	}
	return &out, nil
}
