// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/pod"
)

// TestABackupIsRestored loses a management cluster with its etcd, Shipper's memory and the chart repository, in the middle of
// two rollouts. It restores from shipperctl's file, whose charts serve further rollouts and rollbacks.
// It is the last test of this package: afterwards only its own management cluster works.
func TestABackupIsRestored(t *testing.T) {
	s, older := begin(t).on(t), begin(t)
	if world.new.Pod != nil { // it has replaced the first
		s.moves(&world.new)
		older.moves(&world.new)
	}
	both(t, "before", s, half, older, begun)
	s.rests()
	s.saves()
	older.saves()
	s.blocks()
	s.notifies()
	s.measures()
	was, file := s.memories(), filepath.Join(t.TempDir(), "backup.yaml")
	lost := ctl{t, s.management.Fleet.Kubeconfig}
	out := lost.succeeds("", "backup", "prepare", "-v", "-f", file, "--include-clusters", "--include-rollout-blocks", "--include-charts")
	for _, name := range s.backup.names() {
		contains(t, out, "NAMESPACE", "RELEASE NAME", "OWNING APPLICATION", s.Namespace+" ", name, appName)
	}
	contains(t, out, fmt.Sprintf("Backup objects stored in %q\n", file))
	contains(t, lost.fails("", "backup", "restore", "-f", file), "shipper must be down", "says the Lease shipper-system/shipper-reconciler")
	older.ends()

	third := s.replaced()
	world.lost.Charts.Close()
	older.moves(third)
	s.restores(file, was)
	running := s.running()
	for _, g := range s.guards {
		g.hold(replicas, false)
	}
	for _, g := range older.guards {
		g.hold(replicas, true)
	}
	s.Must("starting the reconciler", third.Pod.StartReconciler(s.Ctx))
	both(t, "after", s, func(s *fixture) {
		isHalf(s)
		s.saysAgain(was)
		s.judged()
		if diff := cmp.Diff(running, s.running()); diff != "" {
			s.Errorf("other workloads run than before (-before +after)\n%s", diff)
		}
	}, older, func(older *fixture) {
		isBack(older)
		for _, name := range older.backup.names() {
			older.scheduled(name)
		}
		older.judged()
	})
	s.goesFurther(ctl{t, s.kubeconfig(third, "")})
}

// both runs a part of two tests in parallel.
func both(t *testing.T, part string, s *fixture, first func(*fixture), older *fixture, second func(*fixture)) {
	t.Helper()
	ok := t.Run(part, func(t *testing.T) {
		t.Run("half a rollout", func(t *testing.T) {
			t.Parallel()
			first(s.on(t))
		})
		t.Run("a backup older than what runs", func(t *testing.T) {
			t.Parallel()
			second(older.on(t))
		})
	})
	if !ok {
		t.FailNow()
	}
}

// begun rolls the second Release out to the first step.
func begun(s *fixture) {
	s.applies(environment("first", "0.0.1", allIn))
	s.Completes(s.Release(0))
	s.edits(environment("second", "0.0.2", vanguard))
	s.WaitsForCommand(s.Release(1), 0)
}

// ends rolls the second Release out to the end: the backup has it with one Pod and without traffic.
func (s *fixture) ends() {
	incumbent, contender := s.backup.names()[0], s.backup.names()[1]
	s.Steps(contender, 2)
	s.Completes(contender)
	s.pods(contender, replicas, replicas)
	s.pods(incumbent, 0, 0)
}

// restores joins the application clusters and restores the backup: with a failure, as a dry run, in full, and once more.
func (s *fixture) restores(file string, was map[string]memory) {
	admin, restorer := ctl{s.T, s.kubeconfig(s.management, "")}, ctl{s.T, s.kubeconfig(s.management, restorer)}
	clusters := filepath.Join(world.lost.Dir, "clusters.yaml")
	admin.succeeds("", "clusters", "join", "-f", clusters)
	s.Must("failing closed", pod.FailClosed(s.Ctx, s.management.Fleet))
	said := restorer.fails("y\nn\ny\n", "backup", "restore", "-f", file)
	contains(s.T, said, "failed calling webhook", "shipperctl clusters setup management --webhook-ignore", "it goes on where it stopped")

	s.Must("starting the webhook", s.management.Pod.StartWebhook(s.Ctx))
	contains(s.T, restorer.succeeds("n\nn\nn\n", "backup", "restore", "-f", file), "Nothing was restored")
	s.tellsAsDocumented(restorer.succeeds("y\ny\ny\n", "backup", "restore", "-v", "-f", file))
	s.remembers(was)
	s.sendsNothingOld()
	s.hasItsCheck()
	before := s.versions()
	contains(s.T, restorer.succeeds("", "backup", "restore", "--yes", "-f", file), "0 objects were created, ")
	if diff := cmp.Diff(before, s.versions()); diff != "" {
		s.Errorf("the second time something was written (-before +after)\n%s", diff)
	}
}

// goesFurther rolls out once more in the restored management cluster, and then removes one application cluster.
func (s *fixture) goesFurther(admin ctl) {
	contender := s.backup.names()[1]
	s.Steps(contender, 2)
	s.Completes(contender)
	s.edits(environment("third", "0.0.1", allIn))
	next := s.Release(2)
	s.Completes(next)
	s.pods(next, replicas, replicas)
	s.pods(contender, 0, 0)
	next = s.rollsBackTwice(admin, next)

	const gone, stays = "us-east-1", "eu-west-1"
	running := s.running()
	clean := []string{"clean", "decommissioned-clusters", "--decommissionedClusters", gone}
	contains(s.T, admin.succeeds("", append(clean, "--dryrun")...), s.Namespace+"/"+next, "would be changed")
	if placed := s.placed(next); placed != stays+","+gone {
		s.Errorf("the dry run left %s on %s", next, placed)
	}
	admin.succeeds("", clean...)
	for _, name := range append(s.backup.names(), next) {
		if placed := s.placed(name); placed != stays {
			s.Errorf("%s is placed on %s", name, placed)
		}
	}
	for _, name := range append(s.backup.names(), next) {
		s.Eventually("Deployments of "+name+" in "+gone, "none", func() (string, error) {
			list := &appsv1.DeploymentList{}
			err := world.lost.Clusters[gone].List(s.Ctx, list, client.InNamespace(s.Namespace), client.MatchingLabels{shipper.ReleaseLabel: name})
			if len(list.Items) == 0 {
				return "none", err
			}
			return fmt.Sprint(len(list.Items)), err
		})
	}
	s.scheduled(next)
	if diff := cmp.Diff(running[stays], s.running()[stays]); diff != "" {
		s.Errorf("workloads in the remaining cluster (-before +after)\n%s", diff)
	}
}

// rollsBackTwice rolls back to a Release of the backup, and from there to the one rolled out last. It returns the resulting
// Release.
func (s *fixture) rollsBackTwice(admin ctl, from string) string {
	admin.succeeds("", "rollout", "rollback", appName, "-n", s.Namespace)
	back := s.Release(3)
	s.Steps(back, 2)
	s.Completes(back)
	s.pods(back, replicas, replicas)
	s.pods(from, 0, 0)
	s.sameEnvironment(back, s.backup.names()[1])
	admin.succeeds("", "rollout", "rollback", appName, "-n", s.Namespace)
	again := s.Release(4)
	s.Completes(again)
	s.pods(again, replicas, replicas)
	s.sameEnvironment(again, from)
	return again
}

// sameEnvironment fails unless two Releases have the same environment and the same chart archive.
func (s *fixture) sameEnvironment(release, other string) {
	s.Helper()
	one, err := s.Get(release)
	s.Must("reading a Release", err)
	two, err := s.Get(other)
	s.Must("reading a Release", err)
	if diff := cmp.Diff(two.Spec.Environment, one.Spec.Environment); diff != "" {
		s.Errorf("%s is not what %s was (-was +is)\n%s", release, other, diff)
	}
	const digest = shipper.ReleaseChartDigestAnnotation
	if is, was := one.Annotations[digest], two.Annotations[digest]; is != was || was == "" {
		s.Errorf("%s is of the archive %q, and %s of %q", release, is, other, was)
	}
}

// placed returns the clusters of a Release.
func (s *fixture) placed(release string) string {
	rel, err := s.Get(release)
	s.Must("reading a Release", err)
	return rel.Annotations[shipper.ReleaseClustersAnnotation]
}

// blocks creates a RolloutBlock that stops nothing in this namespace.
func (s *fixture) blocks() {
	b := &shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "elsewhere"}}
	b.Spec.Message, b.Spec.Author.Name = "not here", "ann"
	b.Spec.Author.Type = "user"
	s.Must("creating a block", s.management.Management.Create(s.Ctx, b))
}

// notification is the one that is saved; its Secret is not.
const notification = "slack"

func notificationSpec() shipper.NotificationSpec {
	return shipper.NotificationSpec{
		To:     shipper.NotificationReceiver{SecretName: "slack-url"},
		Format: shipper.NotificationSlack, Events: []shipper.NotificationEvent{shipper.NotificationStarted, shipper.NotificationCompleted},
	}
}

// notifies creates a Notification that has delivered messages.
func (s *fixture) notifies() {
	n := &shipper.Notification{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: notification}, Spec: notificationSpec()}
	s.Must("creating a Notification", s.management.Management.Create(s.Ctx, n))
	was := n.DeepCopy()
	n.Status.DeliveredUpToTime = &metav1.Time{Time: n.CreationTimestamp.Time}
	s.Must("delivering", s.management.Management.Status().Patch(s.Ctx, n, client.MergeFrom(was)))
}

// sendsNothingOld fails unless the Notification is of changes after its creation, and was created after all Releases.
func (s *fixture) sendsNothingOld() {
	s.Helper()
	n, rels := &shipper.Notification{}, &shipper.ReleaseList{}
	s.Must("reading the Notification",
		s.management.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: notification}, n))
	if diff := cmp.Diff(notificationSpec(), n.Spec); diff != "" {
		s.Errorf("the Notification (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(shipper.NotificationStatus{}, n.Status); diff != "" {
		s.Errorf("the status of the Notification (-want +got)\n%s", diff)
	}
	s.Must("listing Releases", s.management.Management.List(s.Ctx, rels))
	for _, rel := range rels.Items {
		if !rel.CreationTimestamp.Before(&n.CreationTimestamp) {
			s.Errorf("Release %s was created at %s and the Notification at %s", rel.Name, rel.CreationTimestamp, n.CreationTimestamp)
		}
	}
}

// errorsCheck is the Check that is saved.
const errorsCheck = "errors"

func checkSpec() shipper.CheckSpec {
	return shipper.CheckSpec{
		Interval: "30s", Pass: "new < 1.0", Prometheus: &shipper.PrometheusCheck{Queries: map[string]shipper.CheckQuery{"new": "sum(errors)"}},
	}
}

// measures creates a Check.
func (s *fixture) measures() {
	c := &shipper.Check{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: errorsCheck}, Spec: checkSpec()}
	s.Must("creating a Check", s.management.Management.Create(s.Ctx, c))
}

// hasItsCheck fails unless the Check is as it was.
func (s *fixture) hasItsCheck() {
	s.Helper()
	c := &shipper.Check{}
	s.Must("reading the Check", s.management.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: errorsCheck}, c))
	if diff := cmp.Diff(checkSpec(), c.Spec); diff != "" {
		s.Errorf("the Check (-want +got)\n%s", diff)
	}
}

// replaced kills Shipper and its management cluster, and starts a management cluster with only what setup creates. Its
// Shipper starts with empty caches.
func (s *fixture) replaced() *management {
	was := s.management
	was.Pod.Reconciler.Kill()
	was.Pod.Webhook.Kill()
	s.Must("ending the management cluster", was.Fleet.Management.StopAPIServer())
	third, err := another(s.Ctx, "third")
	s.Must("starting a management cluster", err)
	s.Must("setting it up", pod.SetUpManagement(s.Ctx, third.Fleet, third.Dir, third.PodOptions.WebhookPort))
	s.Must("granting the rights to restore", third.allowRestorer(s.Ctx))
	s.Must("allowing it by shipperctl", third.allowShipperctl(s.Ctx))
	third.Pod, err = pod.New(s.Ctx, third.PodOptions)
	s.Must("preparing Shipper", err)
	s.moves(third)
	return third
}

// allowShipperctl grants user restorer the rights that the guide lists beyond those of allowRestorer.
func (m *management) allowShipperctl(ctx context.Context) error {
	name := restorer + "-by-shipperctl"
	rule := func(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
		rule(shipper.GroupName, []string{"get", "create", "stamp"}, "installationtargets", "capacitytargets", "traffictargets"),
		rule(shipper.GroupName, []string{"get", "list", "create"}, "clusters", "rolloutblocks"),
		rule(shipper.GroupName, []string{"get", "create"}, "chartsnapshots", "checks", "notifications", "envelopes", "strategies"),
		rule(shipper.GroupName, []string{"get", "create", "stamp"}, "resourcesnapshots"),
		rule(shipper.GroupName, []string{"update"}, "installationtargets/status", "capacitytargets/status", "traffictargets/status",
			"clusters/status", "rolloutblocks/status"),
		rule("", []string{"get", "create"}, "namespaces", "secrets", "configmaps"),
		rule("apps", []string{"get"}, "deployments"),
		rule("coordination.k8s.io", []string{"get"}, "leases"),
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: restorer}},
	}
	for _, o := range []client.Object{role, binding} {
		if err := m.Management.Create(ctx, o); err != nil {
			return fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
		}
	}
	return nil
}

// kubeconfig writes a kubeconfig with contexts for a management cluster and the application clusters, as user.
func (s *fixture) kubeconfig(m *management, user string) string {
	config, err := clientcmd.LoadFromFile(world.lost.Fleet.Kubeconfig)
	s.Must("reading a kubeconfig", err)
	own, err := clientcmd.LoadFromFile(m.Fleet.Kubeconfig)
	s.Must("reading a kubeconfig", err)
	maps.Copy(config.Clusters, own.Clusters)
	maps.Copy(config.AuthInfos, own.AuthInfos)
	maps.Copy(config.Contexts, own.Contexts)
	config.CurrentContext = own.CurrentContext
	config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo].Impersonate = user
	path := filepath.Join(s.TempDir(), "kubeconfig")
	s.Must("writing a kubeconfig", clientcmd.WriteToFile(*config, path))
	return path
}

// tellsAsDocumented compares the output of `backup restore -v` with the documentation.
func (s *fixture) tellsAsDocumented(out string) {
	app := &shipper.Application{}
	s.Must("reading the Application", s.management.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: appName}, app))
	key := s.Namespace + "/" + appName
	want := fmt.Sprintf("application %q created\n", key)
	for _, name := range s.backup.names() {
		rel, err := s.Get(name)
		s.Must("reading a Release", err)
		key := s.Namespace + "/" + name
		want += fmt.Sprintf("release %q owner reference updates with uid %q\nrelease %q created\n", key, app.UID, key)
		for _, target := range []string{"installation", "traffic", "capacity"} {
			want += fmt.Sprintf("%s target %q owner reference updates with uid %q\n%s target %q created\n", target, key, rel.UID, target, key)
		}
	}
	contains(s.T, out, "Would you like to see an overview of your backup? [y/n]: NAMESPACE ", "Would you like to review backup? [y/n]: - ",
		"  backup_releases:\n  - capacity_target:\n", "Would you like to restore backup? [y/n]: ", want)
}
