// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
)

// maxArchive is the largest archive that is stored. Snapshots are in the etcd of the management cluster, which has a few GiB for
// all namespaces, and a small Application can name an archive of any size. Helm itself stores charts in Secrets of less than 1 MiB.
const maxArchive = 4 << 20

// tooLarge means that an archive of so many bytes is too large to be stored: only another chart helps.
type tooLarge int

// Error says what to do about it.
func (e tooLarge) Error() string {
	return fmt.Sprintf("its archive has %d bytes, and more than %d are not kept, since they would fill etcd: "+
		"see that its repository keeps it", int(e), maxArchive)
}

// headOf is the ChartSnapshot that describes a chart's archive, without owners.
func headOf(rel *shipper.Release, loaded *render.Chart) *shipper.ChartSnapshot {
	archive, chart := loaded.Archive(), rel.Spec.Environment.Chart.Reference()
	chart.Naming = "" // it is the Release's
	parts := (len(archive) + shipper.MaxChartPartBytes - 1) / shipper.MaxChartPartBytes
	return &shipper.ChartSnapshot{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: rel.Namespace, Name: shipper.ChartSnapshotName(loaded.Digest()),
			Labels: map[string]string{shipper.ChartPartsLabel: strconv.Itoa(parts)},
		},
		Spec: shipper.ChartSnapshotSpec{
			Chart: chart, Digest: loaded.Digest(), Bytes: int64(len(archive)), Parts: int32(parts),
		},
	}
}

// partsOf are the ChartSnapshots with the bytes of an archive, without owners.
func partsOf(head *shipper.ChartSnapshot, archive []byte) []*shipper.ChartSnapshot {
	var out []*shipper.ChartSnapshot
	for data := range slices.Chunk(archive, shipper.MaxChartPartBytes) {
		part := &shipper.ChartSnapshot{Spec: head.Spec}
		part.Spec.Part, part.Spec.Data = int32(len(out)+1), data
		part.Namespace, part.Name = head.Namespace, shipper.ChartSnapshotPartName(head.Spec.Digest, part.Spec.Part)
		out = append(out, part)
	}
	return out
}
