// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"bytes"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/chart/repository"
)

// Charts loads charts from memory, from what is kept, and only then from repositories. It is safe for concurrent use.
type Charts struct {
	catalog *repository.Catalog
	reader  client.Reader
}

// NewCharts returns Charts of a catalog; reader reads ChartSnapshots, rarely, and must not keep them in memory.
func NewCharts(catalog *repository.Catalog, reader client.Reader) *Charts {
	return &Charts{catalog: catalog, reader: reader}
}

// Load returns the chart of an exact version whose archive has a digest, if one is known, for use in a namespace. What
// other namespaces keep is not looked at. Errors are those of repository.Catalog.
func (c *Charts) Load(
	ctx context.Context, namespace string, pinned shipper.Chart, digest string,
) (*render.Chart, error) {
	return c.catalog.LoadKept(ctx, namespace, pinned, digest, func(ctx context.Context) ([]byte, error) {
		return c.archive(ctx, namespace, digest)
	})
}

// Verify says who signed the archive of a digest. A snapshot has no signature: it may have been fetched for a Release that does
// not ask.
func (c *Charts) Verify(ctx context.Context, namespace string, pinned shipper.Chart, digest string) (shipper.ChartSignature, error) {
	return c.catalog.Verify(ctx, namespace, pinned, digest)
}

// archive puts the parts of an archive together again.
func (c *Charts) archive(ctx context.Context, namespace, digest string) ([]byte, error) {
	var head shipper.ChartSnapshot
	if err := c.get(ctx, namespace, shipper.ChartSnapshotName(digest), &head); err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	for n := int32(1); n <= head.Spec.Parts; n++ {
		var part shipper.ChartSnapshot
		if err := c.get(ctx, namespace, shipper.ChartSnapshotPartName(digest, n), &part); err != nil {
			return nil, err
		}
		archive.Write(part.Spec.Data)
	}
	return archive.Bytes(), nil
}

// get reads one ChartSnapshot. Where they may not be read, or are not known yet, nothing is kept.
func (c *Charts) get(ctx context.Context, namespace, name string, into *shipper.ChartSnapshot) error {
	err := c.reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, into)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || meta.IsNoMatchError(err) {
		return fmt.Errorf("ChartSnapshot %s/%s: %w", namespace, name, chart.ErrNotKept)
	}
	return err
}
