// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/reconciler/fleet/credential"
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

// sameIdentity returns an error if the backup is of another management cluster. live is nil if the cluster has no identity.
func sameIdentity(live, was *object) error {
	if live == nil || idOf(live) == idOf(was) {
		return nil
	}
	return fmt.Errorf("this management cluster is %q and the backup is of %q, says %s: objects installed before would belong to "+
		"another cluster. If this cluster takes that one's place: kubectl -n %s patch configmap %s --type=merge -p '{\"data\":{\"%s\":\"%s\"}}'",
		idOf(live), idOf(was), describe(live), live.GetNamespace(), live.GetName(), shipper.IdentityKey, idOf(was))
}

func idOf(identity *object) string {
	id, _, _ := unstructured.NestedString(identity.Object, "data", shipper.IdentityKey)
	return id
}

// remind prints the steps left before Shipper starts.
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

// Names in Shipper's namespace.
const (
	deploymentName = "shipper"
)

// down returns an error while Shipper runs: it would act on a half-restored backup.
func down(ctx context.Context, from client.Reader, namespace string, now time.Time) error {
	var d appsv1.Deployment
	err := from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: deploymentName}, &d)
	if err == nil {
		if err := stopped(&d); err != nil {
			return err
		}
	} else if !apierrors.IsNotFound(err) {
		return fmt.Errorf("looking whether Shipper is down: %w", err)
	}
	leader, err := cli.RunningLeader(ctx, from, namespace, now)
	if err != nil || leader == nil {
		return err
	}
	return fmt.Errorf("shipper must be down while a backup is restored, and the reconciler %s runs, says the Lease %s/%s: "+
		"stop it, or wait until %s if it is gone already", leader.Name, namespace, cli.LeaseName, leader.Until.Format(time.RFC3339))
}

// stopped returns an error unless a Deployment has no Pods and is to have none.
func stopped(d *appsv1.Deployment) error {
	command := fmt.Sprintf("kubectl scale deployment %s -n %s --replicas=0", d.Name, d.Namespace)
	switch {
	case d.Spec.Replicas == nil || *d.Spec.Replicas > 0:
		return fmt.Errorf("shipper must be down while a backup is restored, and Deployment %s/%s is to have Pods: %s",
			d.Namespace, d.Name, command)
	case d.Status.Replicas > 0:
		return fmt.Errorf("shipper must be down while a backup is restored, and Deployment %s/%s still has %d Pods: "+
			"wait until they are gone", d.Namespace, d.Name, d.Status.Replicas)
	}
	return nil
}

// printEnded names the clusters whose credentials in the backup have ended: tokens live for a day by default.
func (b Backup) printEnded(out io.Writer, now time.Time) {
	var ended []string
	for _, e := range b {
		if e.Cluster == nil || e.ClusterSecret == nil {
			continue
		}
		secret := &corev1.Secret{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(e.ClusterSecret.Object, secret) != nil {
			continue // Parse has reported it
		}
		if c := credential.Read(secret); c.Ended(now) {
			ended = append(ended, fmt.Sprintf("%s (%s, %s)", e.Cluster.GetName(), c.Kind, c.NotAfter.Format(time.RFC3339)))
		}
	}
	if len(ended) > 0 {
		fmt.Fprintf(out, "Note: credentials in the backup have ended: %s. Run `shipperctl clusters join`, which makes tokens that are good; "+
			"for a client certificate delete its Secret before, or put another one into it\n", strings.Join(ended, ", "))
	}
}

// stops reports whether every other write would fail with err, too.
func stops(err error) bool {
	var dial *net.OpError
	return err != nil && (unanswered(err) || errors.As(err, &dial) || apierrors.IsUnauthorized(err) || meta.IsNoMatchError(err))
}

func unanswered(err error) bool { return strings.Contains(err.Error(), "failed calling webhook") }

// advise adds the remedy to err, where one is known.
func advise(err error) error {
	advice := ""
	switch {
	case err == nil:
		return nil
	case unanswered(err):
		advice = "The webhook is down with the rest of Shipper, and its failurePolicy is Fail. Let writes pass while it is down:\n" +
			"  shipperctl clusters setup management --webhook-ignore\n" +
			"Then run this again: it goes on where it stopped. When Shipper runs again, `shipperctl clusters join` sets Fail."
	case block.RefusedBy(err) != "":
		advice = "RolloutBlocks hold what is restored, as they hold everything. Lift them, or scale the webhook down with the rest of " +
			"Shipper, and run this again: it goes on where it stopped."
	case apierrors.IsForbidden(err):
		advice = "Restoring needs the verbs get, create, patch and stamp on applications, releases and the three targets, " +
			"update on their status, stamp on resourcesnapshots, and place on what Applications and Envelopes place; cluster-admin has them."
	default:
		return err
	}
	return fmt.Errorf("%w\n%s", err, advice)
}
