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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/credential"
)

func newDrain(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "drain NAME",
		Short: "Cordon a cluster, and list the Releases still placed there with the commands that move them",
		Long: "Cordon a cluster, and list the Releases still placed there with the commands that move them. Nothing is moved: where capacity\n" +
			"goes instead is yours to choose. Run it again to see what is left; it fails while something is.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, cluster, err := o.cordon(cmd.Context(), cmd.OutOrStdout(), args[0], true)
			if err != nil {
				return err
			}
			var clusters shipper.ClusterList
			if err := c.List(cmd.Context(), &clusters); err != nil {
				return fmt.Errorf("listing clusters: %w", err)
			}
			releases, err := readReleases(cmd.Context(), c)
			if err != nil {
				return err
			}
			d := newDraining(cluster, clusters.Items, releases)
			fmt.Fprint(cmd.OutOrStdout(), d.print())
			if len(d.live) > 0 {
				return fmt.Errorf("%d releases that may have pods are still placed on cluster %s", len(d.live), cluster.Name)
			}
			return nil
		},
	}
}

// draining is the state of a cluster that is being drained.
type draining struct {
	cluster string
	// live are the Releases there that may have Pods, or get some by themselves.
	live []leavingRelease
	// retired is how many Releases there have no Pods any more.
	retired int
	// others are the clusters of the same region that take Releases and offer as much.
	others []string
}

// leavingRelease is a Release that is to leave a cluster.
type leavingRelease struct {
	namespace, name, app string
	part                 strategy.Role
	complete             bool
	// decided is true where a placement chooses the clusters: it takes back what a user writes into the annotation.
	decided bool
	// stay are the other clusters that the Release is placed on.
	stay []string
}

// newDraining is pure. Releases are sorted by namespace and name.
func newDraining(cluster *shipper.Cluster, all []shipper.Cluster, releases []shipper.Release) draining {
	d := draining{cluster: cluster.Name}
	for i := range all {
		if takesFor(&all[i], cluster) {
			d.others = append(d.others, all[i].Name)
		}
	}
	slices.Sort(d.others)
	parts := rolesOf(releases)
	for i := range releases {
		rel := &releases[i]
		if !isPlacedOn(rel, cluster.Name) {
			continue
		}
		l := leavingRelease{
			namespace: rel.Namespace, name: rel.Name, app: rel.Labels[shipper.AppLabel], part: parts[keyOf(rel)], complete: strategy.Complete(rel),
			decided: rel.Spec.Environment.ClusterRequirements.Placement != nil,
			stay:    slices.DeleteFunc(stamp.Clusters(rel), func(name string) bool { return name == cluster.Name }),
		}
		if l.part == strategy.Retired {
			d.retired++
			continue
		}
		d.live = append(d.live, l)
	}
	slices.SortFunc(d.live, func(a, b leavingRelease) int {
		return strings.Compare(a.namespace+"/"+a.name, b.namespace+"/"+b.name)
	})
	return d
}

// takesFor reports whether a cluster can replace another: it is of the same region, neither cordoned, tainted nor unreachable, and
// has the capabilities of the other.
func takesFor(c, leaving *shipper.Cluster) bool {
	if c.Name == leaving.Name || c.Spec.Region != leaving.Spec.Region || c.Spec.Scheduler.Unschedulable || !c.DeletionTimestamp.IsZero() {
		return false
	}
	if ready := shipper.FindCondition(c.Status.Conditions, shipper.ClusterReady); ready != nil && ready.Status == corev1.ConditionFalse {
		return false
	}
	if len(c.Spec.Taints) > 0 {
		return false
	}
	return !slices.ContainsFunc(leaving.Spec.Capabilities, func(capability string) bool {
		return !slices.Contains(c.Spec.Capabilities, capability)
	})
}

// print lists the Releases that are left, each with its remedy.
func (d draining) print() string {
	var out strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	for _, l := range d.live {
		part := string(l.part)
		if part == "" {
			part = "its place in history is not known"
		}
		say("release %s/%s of application %s (%s) is placed here", l.namespace, l.name, l.app, strings.ToLower(part))
		for _, line := range d.moveCommands(l) {
			say("  %s", line)
		}
	}
	if len(d.live) > 0 {
		say("The next rollout of each of these applications goes elsewhere by itself. The commands move them without one;\n" +
			"they need the verb stamp on releases.")
	}
	if d.retired > 0 {
		say("%d old releases without pods are placed here. This takes the cluster off those that have another:\n"+
			"  shipperctl clean decommissioned-clusters --decommissionedClusters %s", d.retired, d.cluster)
	}
	switch {
	case len(d.live)+d.retired == 0:
		say("no release is placed on cluster %s", d.cluster)
	case len(d.live) == 0:
		say("nothing that may have pods is placed on cluster %s", d.cluster)
	}
	return out.String()
}

// moveCommands are the commands that take one Release off the cluster. To one that has no other, a cluster is added before.
func (d draining) moveCommands(l leavingRelease) []string {
	annotate := func(names ...string) string {
		return fmt.Sprintf("kubectl annotate rel %s -n %s %s=%s --overwrite",
			l.name, l.namespace, shipper.ReleaseClustersAnnotation, strings.Join(names, ","))
	}
	if l.decided {
		return []string{fmt.Sprintf("its placement keeps the cluster: exclude %s in the application's placement.affinity.required, or take it "+
			"out of placement.clusters; a Cluster with onLeave: Remove that is deleted is replaced without that", d.cluster)}
	}
	if len(l.stay) > 0 {
		return []string{annotate(l.stay...)}
	}
	if len(d.others) == 0 {
		return []string{"it has no other cluster, and none of this region is there to take it: join or uncordon one, then run this again"}
	}
	to := d.others[0]
	lines := []string{annotate(d.cluster, to)}
	if l.part == strategy.Contender && l.complete {
		lines = append(lines, fmt.Sprintf("kubectl wait ct/%s -n %s --timeout=10m "+
			`--for=jsonpath='{.status.clusters[?(@.name=="%s")].achievedPercent}'=100`, l.name, l.namespace, to))
	} else {
		lines = append(lines, fmt.Sprintf("shipperctl rollout status %s -n %s, until %s has what it is to have", l.app, l.namespace, to))
	}
	lines = append(lines, annotate(to))
	if len(d.others) > 1 {
		lines = append(lines, "(or, in the place of "+to+": "+strings.Join(d.others[1:], ", ")+")")
	}
	return lines
}

// maxNamed is how many Releases are named at most when a cluster cannot be removed.
const maxNamed = 5

func newRemove(o *options) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Make Shipper forget a cluster that nothing is placed on",
		Long: "Make Shipper forget a cluster that nothing is placed on: the Cluster object is deleted, and its Secret goes with it.\n" +
			"Nothing is changed in the cluster itself. With spec.onLeave: Remove, Releases may still be placed there: the Cluster\n" +
			"goes when Shipper has removed what they have there, and the command lists those that it waits for.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.remove(cmd, args[0], force)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "remove it although Releases are placed there; what they run is left running")
	return cmd
}

func (o *options) remove(cmd *cobra.Command, name string, force bool) error {
	ctx := cmd.Context()
	c, cluster, err := o.read(ctx, name)
	if err != nil {
		return err
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
	removes := cluster.Spec.OnLeave == shipper.OnLeaveRemove && controllerutil.ContainsFinalizer(cluster, shipper.ClusterFinalizer)
	switch {
	case len(placed) > 0 && force && removes:
		return fmt.Errorf("cluster %s has onLeave: Remove, and --force leaves running what Releases run there: leave --force out, or "+
			"kubectl patch cluster %s --type=merge -p '{\"spec\":{\"onLeave\":\"Keep\"}}'", name, name)
	case len(placed) > 0 && !force && !removes:
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
	if removes && len(placed) > 0 {
		fmt.Fprint(cmd.OutOrStdout(), leaves(name, placed))
		return nil
	}
	fmt.Fprint(cmd.OutOrStdout(), removed(cluster, secret, o.Namespace, len(placed)))
	return nil
}

// leaves says what a Cluster with onLeave: Remove waits for.
func leaves(name string, placed []string) string {
	return fmt.Sprintf("cluster %s leaves: the Cluster goes when Shipper has removed what %d releases have there: %s\n"+
		"Condition Leaving says what is left. To wait for the end: kubectl wait --for=delete cluster/%s --timeout=10m\n"+
		"A release that has no other cluster stays there until it is moved: shipperctl clusters drain %s lists the commands.\n"+
		"To let the cluster go now, with what runs there: kubectl patch cluster %s --type=merge -p '{\"spec\":{\"onLeave\":\"Keep\"}}'\n",
		name, len(placed), firstOf(placed), name, name, name)
}

// firstOf names the first Releases of a list, and counts the others.
func firstOf(placed []string) string {
	slices.Sort(placed)
	first := strings.Join(placed[:min(maxNamed, len(placed))], ", ")
	if more := len(placed) - maxNamed; more > 0 {
		first += fmt.Sprintf(" and %d more", more)
	}
	return first
}

// stillPlaced is the error of a cluster that has Releases.
func stillPlaced(name string, placed []string) error {
	return fmt.Errorf("%d releases are placed on cluster %s: %s\nshipperctl clusters drain %s lists the commands that move them; "+
		"with --force their Pods keep running there, and Shipper does not clean them up", len(placed), name, firstOf(placed), name)
}

// removed lists the objects that stay when a Cluster is deleted. secret has no name when there is none.
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

func ownedBy(secret *corev1.Secret, uid types.UID) bool {
	return slices.ContainsFunc(secret.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.UID == uid })
}

func keyOf(rel *shipper.Release) types.NamespacedName {
	return client.ObjectKeyFromObject(rel)
}
