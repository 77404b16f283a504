// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/member/applyset"
)

// Data keys of anchors, beside that of the target's UID.
const (
	// inventoryKey holds what is installed, as JSON.
	inventoryKey = "Inventory"
	// renderedKey holds the fingerprint of what the inventory was rendered from; empty while it is being installed.
	renderedKey = "RenderedFrom"
	// digestKey holds the digest of the two: without it, as when a user has edited the inventory, all is planned again.
	digestKey = "InventoryDigest"
)

// anchorSuffix is how the name of every anchor ends.
var anchorSuffix = shipper.AnchorName("")

// item is one installed object.
type item struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	Digest     string `json:"digest,omitempty"`
	// InPlace is set for a workload that exists once for all Releases, and is written at its step.
	InPlace bool `json:"inPlace,omitempty"`
	// Replicas is the number of Pods of such a workload at full capacity.
	Replicas int32 `json:"replicas,omitempty"`
}

// gvk is the item's kind.
func (i item) gvk() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(i.APIVersion, i.Kind)
}

// key is the item's name.
func (i item) key() types.NamespacedName {
	return types.NamespacedName{Namespace: i.Namespace, Name: i.Name}
}

// same reports whether two items are the same object, in whatever version it was written.
func (i item) same(o item) bool {
	return i.gvk().GroupKind() == o.gvk().GroupKind() && i.key() == o.key()
}

// String is for people.
func (i item) String() string {
	return fmt.Sprintf("%s %q", i.Kind, i.Name)
}

// anchor is the ConfigMap that owns a target's objects in one cluster.
type anchor struct {
	applyset.Version

	targetUID string
	// identity is that of the management cluster that wrote it; empty when it does not say.
	identity string
	deleting bool
	// unlabelled is set when the ConfigMap lacks the label of the Application: no cache has it, and no event reports its deletion.
	unlabelled bool
	// finalizers are those of the ConfigMap as it was read.
	finalizers []string
	// rendered is empty, too, when the inventory is not the one that was written with the fingerprint; done is whether there is any.
	rendered  string
	done      bool
	inventory []item
	// hooks is a hookBook; empty when none were run.
	hooks string
	// claim is set when it is another management cluster's.
	claim error
}

// readAnchor returns nil when there is none.
func readAnchor(ctx context.Context, m *fleet.Member, it *shipper.InstallationTarget) (*anchor, error) {
	a, err := anchorFrom(ctx, m.Client(), m, it)
	if a != nil || err != nil {
		return a, err
	}
	// One without our label is in no cache and causes no event.
	if a, err = liveAnchor(ctx, m, it); a != nil && a.claim != nil {
		return nil, conflict("%s", a.claim)
	}
	return a, err
}

// liveAnchor is readAnchor from the API server itself. A stale cache must decide neither what is deleted nor what is created: the
// anchor may have become another management cluster's.
func liveAnchor(ctx context.Context, m *fleet.Member, it *shipper.InstallationTarget) (*anchor, error) {
	return anchorFrom(ctx, m.Live(), m, it)
}

func anchorFrom(
	ctx context.Context, reader client.Reader, m *fleet.Member, it *shipper.InstallationTarget,
) (*anchor, error) {
	key := anchorKey(it)
	cm, err := applyset.Read(ctx, reader, key)
	if cm == nil || err != nil {
		return nil, err
	}
	if !fleet.IsAnchor(cm) {
		return nil, conflict("ConfigMap %q is not Shipper's, and its name is needed for the anchor", key.Name)
	}
	return anchorOf(m, cm), nil
}

// anchorOf reads an anchor.
func anchorOf(m *fleet.Member, cm *corev1.ConfigMap) *anchor {
	out := &anchor{
		Version: applyset.VersionOf(cm), targetUID: cm.Data[shipper.AnchorTargetUIDKey], identity: cm.Data[shipper.AnchorIdentityKey],
		deleting: cm.DeletionTimestamp != nil, finalizers: cm.Finalizers, hooks: cm.Data[hooksKey], claim: m.Claim(cm),
		done: cm.Data[renderedKey] != "", unlabelled: cm.Labels[shipper.AppLabel] == "",
	}
	out.inventory, out.rendered = inventoryOf(cm)
	return out
}

// inventoryOf reads what an anchor lists, and what that was rendered from. An inventory that cannot be read is none: it is
// made again. What it lists of another namespace, which Shipper never writes, is ignored: a user who may write ConfigMaps
// here, a chart among them, has no say there.
func inventoryOf(cm *corev1.ConfigMap) (inventory []item, rendered string) {
	if err := json.Unmarshal([]byte(cm.Data[inventoryKey]), &inventory); err != nil {
		return nil, ""
	}
	elsewhere := func(i item) bool { return i.Namespace != "" && i.Namespace != cm.Namespace }
	if slices.ContainsFunc(inventory, elsewhere) {
		return slices.DeleteFunc(inventory, elsewhere), ""
	}
	if rendered = cm.Data[renderedKey]; cm.Data[digestKey] != digestOf(cm.Data[inventoryKey], rendered) {
		return inventory, ""
	}
	return inventory, rendered
}

// digestOf is what an anchor says beside an inventory and the fingerprint of what it was rendered from.
func digestOf(inventory, rendered string) string {
	sum := sha256.Sum256([]byte(rendered + "\n" + inventory))
	return hex.EncodeToString(sum[:])
}

// anchorFor is the anchor as it is to be, before it is written.
func anchorFor(m *fleet.Member, it *shipper.InstallationTarget, inventory []item, rendered string) *anchor {
	return &anchor{
		targetUID: string(it.UID), identity: m.Identity, rendered: rendered, done: rendered != "", inventory: inventory,
		finalizers: []string{shipper.AnchorFinalizer}, unlabelled: it.Labels[shipper.AppLabel] == "",
	}
}

// says reports whether the anchor says what want does.
func (a *anchor) says(want *anchor) bool {
	return a != nil && (!a.unlabelled || want.unlabelled) && a.targetUID == want.targetUID && a.identity == want.identity &&
		a.rendered == want.rendered && a.hooks == want.hooks && slices.Equal(a.inventory, want.inventory) && (a.held() || !want.held())
}

// goesWith reports whether what the anchor owns goes with a target of its name: it was written by this management cluster,
// or does not say by which, and was written for this very target. After a restore a target has another UID than its
// anchor says.
func (a *anchor) goesWith(it *shipper.InstallationTarget) bool {
	return a.claim == nil && (a.identity != "" || a.targetUID == string(it.UID))
}

// writeAnchor makes the anchor say what want does, and returns it with its UID. What it says now is written over as the API server
// itself showed it only: what another management cluster wrote meanwhile is not overwritten.
func writeAnchor(
	ctx context.Context, m *fleet.Member, it *shipper.InstallationTarget, now, want *anchor,
) (*anchor, error) {
	var err error
	switch {
	case now == nil:
		err = m.ClaimedLive(ctx, it.Namespace, it.Labels[shipper.AppLabel])
	case now.deleting && !now.held():
		err = waiting("what an earlier installation left behind is still being removed")
	default:
		err = now.claim
	}
	if err != nil || now.says(want) {
		return now, err
	}
	list, err := want.list(it)
	if err != nil {
		return nil, err
	}
	out := *want
	if now != nil {
		out.Version = now.Version
	}
	if out.Version, err = list.Write(ctx, m.Client(), out.Version); err != nil {
		return nil, err
	}
	return &out, nil
}

// list is the ConfigMap.
func (a *anchor) list(it *shipper.InstallationTarget) (out applyset.List, err error) {
	inventory, err := json.Marshal(a.inventory)
	if err != nil {
		return out, fmt.Errorf("writing the inventory: %w", err)
	}
	labels := map[string]string{}
	for k, v := range it.Labels {
		if strings.HasPrefix(k, "shipper-") {
			labels[k] = v
		}
	}
	labels[shipper.OwnedByLabel] = it.Name
	data := map[string]string{
		shipper.AnchorTargetUIDKey: a.targetUID, shipper.AnchorIdentityKey: a.identity,
		inventoryKey: string(inventory), renderedKey: a.rendered,
	}
	if a.rendered != "" {
		data[digestKey] = digestOf(string(inventory), a.rendered)
	}
	if a.hooks != "" {
		data[hooksKey] = a.hooks
	}
	return applyset.List{NamespacedName: anchorKey(it), Labels: labels, Data: data, Finalizers: []string{shipper.AnchorFinalizer}}, nil
}

// record writes the anchor, unless it says so already: a pass that ended after this write must not begin with it again.
func (i *installer) record(ctx context.Context, inventory []item, rendered string) error {
	want := anchorFor(i.member, i.it, inventory, rendered)
	want.hooks = i.hookRecord.text()
	if i.anchor.says(want) {
		return nil
	}
	now := i.anchor
	if !i.live {
		var err error
		if now, err = liveAnchor(ctx, i.member, i.it); err != nil {
			return err
		}
	}
	written, err := writeAnchor(ctx, i.member, i.it, now, want)
	if err == nil {
		i.anchor, i.live = written, true
	}
	return err
}

// noteAdoption records the event about an anchor with another UID.
func (i *installer) noteAdoption() {
	if i.anchor.targetUID != string(i.it.UID) {
		i.events = append(i.events, adopted(i.member.Name, shipper.AnchorName(i.it.Name)))
	}
}

// anchorKey is where the anchor of a target is.
func anchorKey(it *shipper.InstallationTarget) types.NamespacedName {
	return types.NamespacedName{Namespace: it.Namespace, Name: shipper.AnchorName(it.Name)}
}

// reference makes the anchor, which has that name, an owner that is waited for when it is deleted in the foreground.
func (a *anchor) reference(name string) metav1.OwnerReference {
	block := true
	return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: a.UID, BlockOwnerDeletion: &block}
}

// owns reports whether the anchor is among an object's owners.
func (a *anchor) owns(live *metav1.PartialObjectMetadata) bool {
	for _, ref := range live.OwnerReferences {
		if a != nil && ref.UID == a.UID {
			return true
		}
	}
	return false
}

// merge is list with those items of more that are not in it yet.
func merge(list, more []item) []item {
	return append(append([]item(nil), list...), without(more, list)...)
}

// without is list without the items that are in other.
func without(list, other []item) []item {
	var out []item
	for _, i := range list {
		if !contains(other, i) {
			out = append(out, i)
		}
	}
	return out
}

func contains(list []item, i item) bool {
	for _, o := range list {
		if o.same(i) {
			return true
		}
	}
	return false
}
