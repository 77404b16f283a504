// SPDX-License-Identifier: Apache-2.0

package chartsnapshot

import (
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
)

// maxKept is the largest archive that is kept. Snapshots are in the etcd of the management cluster, which has a few GiB for
// everybody, and a small Application can ask for an archive of any size. Helm itself keeps charts in Secrets of less than 1 MiB.
const maxKept = 4 << 20

// tooLarge means that an archive of so many bytes is too large to be kept, which nothing but another chart changes.
type tooLarge int

// Error says what to do about it.
func (e tooLarge) Error() string {
	return fmt.Sprintf("its archive has %d bytes, and more than %d are not kept, since they would fill etcd: "+
		"see that its repository keeps it", int(e), maxKept)
}

// heading is the object that says what a chart's archive is. It belongs to one Release at first.
func heading(rel *shipper.Release, loaded *render.Chart) *shipper.ChartSnapshot {
	archive := loaded.Archive()
	parts := (len(archive) + shipper.MaxChartPartBytes - 1) / shipper.MaxChartPartBytes
	return &shipper.ChartSnapshot{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: rel.Namespace, Name: shipper.ChartSnapshotName(loaded.Digest()),
			Labels:          map[string]string{shipper.ChartPartsLabel: strconv.Itoa(parts)},
			OwnerReferences: []metav1.OwnerReference{ownedBy(rel)},
		},
		Spec: shipper.ChartSnapshotSpec{
			Chart: rel.Spec.Environment.Chart.Reference(), Digest: loaded.Digest(), Bytes: int64(len(archive)), Parts: int32(parts),
		},
	}
}

// parts are the objects that have the bytes of an archive. They belong to the one that says what it is.
func parts(head *shipper.ChartSnapshot, archive []byte) []*shipper.ChartSnapshot {
	var out []*shipper.ChartSnapshot
	for data := range slices.Chunk(archive, shipper.MaxChartPartBytes) {
		part := &shipper.ChartSnapshot{Spec: head.Spec}
		part.Spec.Part, part.Spec.Data = int32(len(out)+1), data
		part.Namespace, part.Name = head.Namespace, shipper.ChartSnapshotPartName(head.Spec.Digest, part.Spec.Part)
		part.OwnerReferences = []metav1.OwnerReference{ownedByHead(head)}
		out = append(out, part)
	}
	return out
}

// ownedBy is the reference that has the garbage collector spare a snapshot for a Release.
func ownedBy(rel *shipper.Release) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: shipper.GroupVersion.String(), Kind: "Release", Name: rel.Name, UID: rel.UID,
	}
}

// ownedByHead is the reference that has a part go with what says what it is a part of.
func ownedByHead(head metav1.Object) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: shipper.GroupVersion.String(), Kind: "ChartSnapshot", Name: head.GetName(), UID: head.GetUID(),
	}
}

// owns reports whether a reference is among those of an object that stays.
func owns(o metav1.Object, owner metav1.OwnerReference) bool {
	return o.GetDeletionTimestamp() == nil && slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
		return r.UID == owner.UID
	})
}
