// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// ready returns an error when a backup cannot be restored now. It writes nothing.
func ready(ctx context.Context, from client.Reader, b Backup, namespace string, now time.Time) error {
	if err := down(ctx, from, namespace, now); err != nil {
		return err
	}
	for _, e := range b {
		if e.Identity == nil {
			continue
		}
		live, err := get(ctx, from, configMapKind, key(e.Identity))
		if err != nil {
			return err
		}
		if err := sameIdentity(live, e.Identity); err != nil {
			return err
		}
	}
	_, err := list(ctx, from, clusterKind) // the kinds are there
	return err
}

// sameIdentity returns an error when the cluster is another one than that of the backup. live is nil when it is none yet.
func sameIdentity(live, was *object) error {
	if live == nil || idOf(live) == idOf(was) {
		return nil
	}
	return fmt.Errorf("this management cluster is %q and the backup is of %q, says %s: what was installed before would be a "+
		"stranger's. If this cluster takes that one's place: kubectl -n %s patch configmap %s --type=merge -p '{\"data\":{\"%s\":\"%s\"}}'",
		idOf(live), idOf(was), describe(live), live.GetNamespace(), live.GetName(), shipper.IdentityKey, idOf(was))
}

func idOf(identity *object) string {
	id, _, _ := unstructured.NestedString(identity.Object, "data", shipper.IdentityKey)
	return id
}

// remind says what is left to do before Shipper is started.
func (o *options) remind(ctx context.Context, from client.Reader, out io.Writer) error {
	identity, err := get(ctx, from, configMapKind, types.NamespacedName{Namespace: o.Namespace, Name: shipper.IdentityName})
	if err != nil {
		return errors.Join(errors.New("all is restored, but it cannot be said whether this cluster has its identity"), err)
	}
	if identity == nil {
		fmt.Fprintf(out, "Note: this management cluster has no identity yet, and the backup has none. Before Shipper starts, give it the one "+
			"that anchors in application clusters say under %s, or it takes what was installed for another's:\n"+
			"  kubectl -n %s create configmap %s --from-literal=%s=ID\n",
			shipper.AnchorIdentityKey, o.Namespace, shipper.IdentityName, shipper.IdentityKey)
	}
	return nil
}
