// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/member/applyset"
	"shipper.dev/shipper/reconciler/retry"
)

// scopedKey is the data key of the list, as JSON. The ConfigMap is an anchor without an inventory: versions that do not know the key take
// nothing from it.
const scopedKey = "ClusterScoped"

// scopedEntry is one object without a namespace.
type scopedEntry struct {
	shipper.ClusterScopedObject
	// Pending is set from before the object is written until it has been.
	Pending bool `json:"pending,omitempty"`
}

// scopedList is the ConfigMap in shipper-system of an application cluster that lists what a target has there without a namespace. It stays
// when the target's namespace is deleted there, and the anchor with it.
type scopedList struct {
	applyset.Version

	targetUID string
	entries   []scopedEntry
}

// all are the entries of a list, or none without one.
func (l *scopedList) all() []scopedEntry {
	if l == nil {
		return nil
	}
	return l.entries
}

// says reports whether nothing has to be written.
func (l *scopedList) says(it *shipper.InstallationTarget, entries []scopedEntry) bool {
	if l == nil {
		return len(entries) == 0
	}
	return l.targetUID == string(it.UID) && slices.Equal(l.entries, entries)
}

// entriesOf are entries of objects that are there.
func entriesOf(objects []shipper.ClusterScopedObject) []scopedEntry {
	var out []scopedEntry
	for _, o := range objects {
		out = append(out, scopedEntry{ClusterScopedObject: o})
	}
	return out
}

// listKey is where the list of a target is. No tenant may write there.
func listKey(m *fleet.Member, it *shipper.InstallationTarget) types.NamespacedName {
	return types.NamespacedName{
		Namespace: shipper.SystemNamespace, Name: shipper.ScopedAnchorName(m.Identity, it.Namespace, it.Name),
	}
}

// readList returns nil when there is none. Entries that cannot be read are none.
func readList(ctx context.Context, from client.Reader, m *fleet.Member, it *shipper.InstallationTarget) (*scopedList, error) {
	cm, err := applyset.Read(ctx, from, listKey(m, it))
	if cm == nil || err != nil {
		return nil, err
	}
	out := &scopedList{Version: applyset.VersionOf(cm), targetUID: cm.Data[shipper.AnchorTargetUIDKey]}
	if err := json.Unmarshal([]byte(cm.Data[scopedKey]), &out.entries); err != nil {
		out.targetUID, out.entries = "", nil // it is written again
	}
	return out, nil
}

// readList reads the list from the cache. Where there is none, versions before it may have left one in the status.
func (i *installer) readList(ctx context.Context) error {
	var err error
	if i.listed, err = readList(ctx, i.member.Client(), i.member, i.it); err != nil || i.listed != nil {
		return err
	}
	reported := find(i.it.Status.Clusters, i.member.Name).ClusterScoped
	if len(reported) == 0 {
		return nil
	}
	return i.changeList(ctx, func(listed []scopedEntry) []scopedEntry {
		if i.listed != nil { // the cache is late
			return listed
		}
		return entriesOf(reported)
	})
}

// changeList writes the list if it is to be another, as the API server itself showed it.
func (i *installer) changeList(ctx context.Context, change func(listed []scopedEntry) []scopedEntry) error {
	want := change(i.listed.all())
	if i.listed.says(i.it, want) {
		return nil
	}
	if !i.listedLive {
		var err error
		if i.listed, err = readList(ctx, i.member.Live(), i.member, i.it); err != nil {
			return err
		}
		i.listedLive = true
		if want = change(i.listed.all()); i.listed.says(i.it, want) {
			return nil
		}
	}
	written, err := i.writeList(ctx, want)
	if err == nil {
		i.listed = written
	}
	return err
}

func (i *installer) writeList(ctx context.Context, entries []scopedEntry) (*scopedList, error) {
	text, err := json.Marshal(entries)
	if err != nil {
		return nil, fmt.Errorf("writing the list of objects without a namespace: %w", err)
	}
	out := &scopedList{targetUID: string(i.it.UID), entries: entries}
	list := applyset.List{
		NamespacedName: listKey(i.member, i.it),
		Labels:         map[string]string{shipper.AppLabel: i.it.Labels[shipper.AppLabel], shipper.OwnedByLabel: i.it.Name},
		Annotations:    map[string]string{shipper.PlacedOwnerAnnotation: ownerOf(i.it)},
		Data: map[string]string{
			shipper.AnchorTargetUIDKey: out.targetUID, shipper.AnchorIdentityKey: i.member.Identity, scopedKey: string(text),
		},
	}
	if i.listed != nil {
		out.Version = i.listed.Version
	}
	out.Version, err = list.Write(ctx, i.member.Client(), out.Version)
	if i.listed == nil && apierrors.IsNotFound(err) {
		return nil, &problem{shipper.NamespaceMissing, retry.Recheck, fmt.Sprintf("the cluster has no namespace %q, where Shipper lists "+
			"objects without a namespace before it writes them; create it there", list.Namespace)}
	}
	return out, err
}

// listedByOthers are the objects that lists of other Applications have, and the other targets of this one that have lists.
func listedByOthers(it *shipper.InstallationTarget, anchors []corev1.ConfigMap) (others []item, siblings map[string]bool) {
	siblings = map[string]bool{}
	for i := range anchors {
		cm := &anchors[i]
		text, lists := cm.Data[scopedKey]
		switch name := cm.Labels[shipper.OwnedByLabel]; {
		case !lists || cm.Namespace != shipper.SystemNamespace:
		case cm.Annotations[shipper.PlacedOwnerAnnotation] != ownerOf(it):
			var entries []scopedEntry
			if json.Unmarshal([]byte(text), &entries) == nil {
				for _, e := range entries {
					others = append(others, scopedItem(e.ClusterScopedObject))
				}
			}
		case name != it.Name:
			siblings[name] = true
		}
	}
	return others, siblings
}

// ownerOf is the Application of a target, as its list names it.
func ownerOf(it *shipper.InstallationTarget) string {
	return it.Namespace + "/" + it.Labels[shipper.AppLabel]
}

// forgetList deletes the list of a target whose anchor has become another's, and with it what the list has.
func forgetList(ctx context.Context, m *fleet.Member, it *shipper.InstallationTarget) error {
	listed, err := readList(ctx, m.Live(), m, it)
	if err != nil {
		return err
	}
	return deleteList(ctx, m, it, listed)
}

// deleteList deletes the list of a target as it was read.
func deleteList(ctx context.Context, m *fleet.Member, it *shipper.InstallationTarget, listed *scopedList) error {
	if listed == nil {
		return nil
	}
	return client.IgnoreNotFound(applyset.DeleteList(ctx, m.Client(), listKey(m, it), listed.Version))
}
