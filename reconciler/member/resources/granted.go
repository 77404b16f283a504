// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/reconciler/member/applyset"
	"shipper.dev/shipper/reconciler/member/rights"
)

// withGrants is a Cluster in which objects without a namespace are written as the granted account where Shipper's own account lacks the
// right. Only placements use it: their authors need the verb place on each of these objects.
type withGrants struct{ Cluster }

// Client implements Cluster.
func (c withGrants) Client() client.Client {
	return grantedWriter{Client: c.Cluster.Client(), granted: c.Granted()}
}

// writer writes an object until it is as wanted.
func (p *pass) writer(wanted *unstructured.Unstructured) client.Client {
	cluster, ok := p.Cluster.(withGrants)
	if !ok {
		return p.Cluster.Client()
	}
	return grantedWriter{Client: cluster.Cluster.Client(), granted: cluster.Granted(), live: cluster.Live, wanted: wanted}
}

// grantedWriter repeats denied writes as the granted account. It changes objects with wanted content alone, whose rights it can judge.
type grantedWriter struct {
	client.Client
	granted client.Client
	live    func() client.Reader
	wanted  *unstructured.Unstructured
}

// judged writes as the granted account if the wanted content may be written so.
func (w grantedWriter) judged(ctx context.Context, write func() error) error {
	if w.wanted == nil {
		return errors.New("the granted account writes no content that was not judged")
	}
	if err := giveBoundedRights(ctx, w.live, w.wanted); err != nil {
		return err
	}
	return write()
}

// Apply implements client.Client.
func (w grantedWriter) Apply(ctx context.Context, object runtime.ApplyConfiguration, how ...client.ApplyOption) error {
	one, ok := object.(interface{ GetNamespace() string })
	return either(ok && one.GetNamespace() == "",
		func() error { return w.Client.Apply(ctx, object, how...) },
		func() error { return w.judged(ctx, func() error { return w.granted.Apply(ctx, object, how...) }) })
}

// Create implements client.Client. RBAC can grant the name of an apply, which is in its URL, and not that of a POST.
func (w grantedWriter) Create(ctx context.Context, object client.Object, how ...client.CreateOption) error {
	one, ok := object.(*unstructured.Unstructured)
	return either(ok && one.GetNamespace() == "",
		func() error { return w.Client.Create(ctx, object, how...) },
		func() error { return w.judged(ctx, func() error { return applyset.Apply(ctx, w.granted, one) }) })
}

// Patch implements client.Client.
func (w grantedWriter) Patch(ctx context.Context, object client.Object, patch client.Patch, how ...client.PatchOption) error {
	return either(object.GetNamespace() == "",
		func() error { return w.Client.Patch(ctx, object, patch, how...) },
		func() error {
			return w.judged(ctx, func() error { return w.granted.Patch(ctx, object, patch, how...) })
		})
}

// Delete implements client.Client.
func (w grantedWriter) Delete(ctx context.Context, object client.Object, how ...client.DeleteOption) error {
	return either(object.GetNamespace() == "",
		func() error { return w.Client.Delete(ctx, object, how...) },
		func() error { return w.granted.Delete(ctx, object, how...) })
}

// either repeats a write that the own account may not make, if a grant may cover it. Where no grant does, the error is that of the own
// account; a grant whose rules do not cover a role has an error of its own.
func either(grantable bool, own, granted func() error) error {
	err := own()
	if !grantable || !rights.Denied(err) {
		return err
	}
	if second := granted(); !rights.Denied(second) || rights.Escalates(second) {
		return second
	}
	return err
}
