// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/credential"
)

// maxNamed is how many Releases are named at most when a cluster cannot be removed.
const maxNamed = 5

// newRemove returns `clusters remove`.
func newRemove(o *options) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Make Shipper forget a cluster that nothing is placed on",
		Long: "Make Shipper forget a cluster that nothing is placed on: the Cluster object is deleted, and its Secret goes with it.\n" +
			"Nothing is changed in the cluster itself.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.remove(cmd, args[0], force)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "remove it although Releases are placed there; what they run is left running")
	return cmd
}

// remove deletes a Cluster, unless Releases are placed on it.
func (o *options) remove(cmd *cobra.Command, name string, force bool) error {
	c, err := o.client()
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	cluster := &shipper.Cluster{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
		return fmt.Errorf("reading cluster %s: %w", name, err)
	}
	var placed []string
	err = eachRelease(ctx, c, func(rel *shipper.Release) {
		if isPlacedOn(rel, name) {
			placed = append(placed, keyOf(rel).String())
		}
	})
	if err != nil {
		return err
	}
	if len(placed) > 0 && !force {
		return stillPlaced(name, placed)
	}
	secret := &corev1.Secret{}
	err = c.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: name}, secret)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading Secret %s/%s: %w", o.Namespace, name, err)
	}
	if err := c.Delete(ctx, cluster, client.Preconditions{UID: &cluster.UID}); err != nil {
		return fmt.Errorf("deleting cluster %s: %w", name, err)
	}
	fmt.Fprint(cmd.OutOrStdout(), removed(cluster, secret, o.Namespace, len(placed)))
	return nil
}

// stillPlaced says why a cluster is not removed.
func stillPlaced(name string, placed []string) error {
	slices.Sort(placed)
	first := strings.Join(placed[:min(maxNamed, len(placed))], ", ")
	if more := len(placed) - maxNamed; more > 0 {
		first += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("%d releases are placed on cluster %s: %s\nshipperctl clusters drain %s tells how to move them; "+
		"with --force what they run there is left running, and nobody cleans it up", len(placed), name, first, name)
}

// removed says what stays behind when a Cluster is deleted. secret has no name when there is none.
func removed(cluster *shipper.Cluster, secret *corev1.Secret, namespace string, placed int) string {
	var out strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	say("cluster %s is removed: Shipper does not speak to it any more. What stays behind:", cluster.Name)
	if placed > 0 {
		say("  what %d releases run there: it runs on, and Shipper does not clean it up", placed)
	}
	if secret.Name != "" && !ownedBy(secret, cluster.UID) {
		say("  its credentials, which are not the Cluster's to take along: kubectl delete secret %s -n %s", secret.Name, secret.Namespace)
	}
	say("  its entry in clusters.yaml: the next `clusters join` brings it back unless you take it out")
	if credential.Read(secret).Renewed() {
		say("  its token, which is void at %s, and before if the Secret is deleted that it is bound to: kubectl delete secret %s -n %s,\n"+
			"    with a context of that cluster; `clusters revoke` does that while the cluster is joined",
			credential.Read(secret).NotAfter.Format(time.RFC3339), credential.Read(secret).Account.Secret, namespace)
	}
	say("  in the cluster itself, the account that was made when it was joined, with its token and its rights. If no other management\n"+
		"  cluster uses them, delete them with a context of that cluster:\n"+
		"    kubectl delete clusterrolebinding,clusterrole shipper:application-cluster shipper:application-cluster-additions\n"+
		"    kubectl delete serviceaccount %s -n %s", shipper.ApplicationServiceAccount, namespace)
	return out.String()
}

// ownedBy reports whether a Secret goes when the Cluster goes.
func ownedBy(secret *corev1.Secret, uid types.UID) bool {
	for _, owner := range secret.OwnerReferences {
		if owner.UID == uid {
			return true
		}
	}
	return false
}

// keyOf is the namespace and name of a Release.
func keyOf(rel *shipper.Release) types.NamespacedName {
	return types.NamespacedName{Namespace: rel.Namespace, Name: rel.Name}
}
