// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
)

// super is the Application that documents use.
const super = "super-server"

// givens establish what documents say is given, by the words of the document.
var givens = map[string]func(*env){
	"a fleet": func(*env) {},
	"a fleet with a release": func(s *env) {
		s.achieved(s.applied(s.application(super, "0.0.1", 2, "eu-west")), 0)
	},
	"a fleet with a release, whose chart is kept": func(s *env) {
		s.achieved(s.applied(s.application(super, "0.0.1", 2, "eu-west")), 0)
		s.eventually("the chart is kept", func() error {
			var all shipper.ChartSnapshotList
			err := world.management.List(s.ctx, &all, client.InNamespace(s.namespace))
			if err == nil && len(all.Items) < 2 {
				err = fmt.Errorf("%d ChartSnapshots", len(all.Items))
			}
			return err
		})
	},
	"pubring.gpg with a key": func(s *env) {
		s.file("pubring.gpg", string(charts.NewSigner(s.T, "release", nil).Public()))
	},
	"app.yaml of super-server": func(s *env) {
		s.file("app.yaml", s.manifest(s.application(super, "~0.0", 6, "eu-west", "us-east")))
	},
	"super-server in its first step": func(s *env) {
		s.achieved(s.applied(s.application(super, "0.0.1", 4, "eu-west")), 0)
	},
	"super-server in its first step, after another release": func(s *env) {
		s.moved(s.applied(s.application(super, "0.0.1", 4, "eu-west")), 2)
		s.achieved(s.applied(s.application(super, "0.0.2", 4, "eu-west")), 0)
	},
	"super-server in the canary step": func(s *env) {
		s.moved(s.applied(s.application(super, "0.0.1", 4, "eu-west", "us-east")), 2)
		s.moved(s.applied(s.application(super, "0.0.2", 4, "eu-west", "us-east")), 1)
	},
	"super-server, blocked by dns-outage": func(s *env) {
		s.achieved(s.applied(s.application(super, "0.0.1", 4, "eu-west")), 0)
		s.blocked(shipper.GlobalBlocksNamespace, "dns-outage", "jdoe",
			shipper.RolloutBlockSpec{Message: "DNS issues, troubleshooting in progress"})
	},
	"super-server, and app.yaml blocked by incident-4711": func(s *env) {
		s.names = append(s.names, "-n default", "-n "+s.namespace)
		s.achieved(s.applied(s.application(super, "0.0.1", 4, "eu-west")), 0)
		s.file("app.yaml", s.manifest(s.application(super, "0.0.2", 4, "eu-west")))
		s.incident()
	},
	"super-server of 0.0.1, app.yaml of ~0.0, and a weekend ahead": func(s *env) {
		s.names = append(s.names, "shop/", s.namespace+"/")
		app := func(version string) *shipper.Application {
			a := s.application(super, version, 10, "eu-west", "us-east")
			steps := a.Spec.Template.Strategy
			steps.Steps = append(steps.Steps[:1:1], steps.Steps[2])
			return a
		}
		s.moved(s.applied(app("0.0.1")), 1)
		s.file("app.yaml", s.manifest(app("~0.0")))
		s.weekend()
	},
	"super-server with an image that cannot be pulled": func(s *env) {
		s.moved(s.applied(s.application(super, "0.0.1", 1, "eu-west")), 2)
		app := s.application(super, "0.0.1", 1, "eu-west")
		(*app.Spec.Template.Values)["image"] = map[string]any{"tag": "broken"}
		name := s.applied(app)
		s.eventually("the Release says why it waits", func() error {
			rel := &shipper.Release{}
			err := world.management.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, rel)
			if c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseStrategyExecuted); err == nil && (c == nil ||
				!strings.Contains(c.Message, "ImagePullBackOff")) {
				err = fmt.Errorf("it says %+v", c)
			}
			return err
		})
	},
	"the blocks weekend and incident-4711": func(s *env) {
		s.weekend()
		s.incident()
	},
	"NAME, which a user advances": func(s *env) {
		name := s.applied(s.application(super, "0.0.1", 2, "eu-west"))
		s.names = append(s.names, "NAME", name)
		s.first["condition=Complete"] = func() { s.moved(name, 2) }
	},
	"NAME in its second step": func(s *env) {
		name := s.applied(s.application(super, "0.0.1", 2, "eu-west"))
		s.names = append(s.names, "NAME", name)
		s.moved(name, 1)
	},
	"RELEASE, whose first step waits for example.com/Verified": func(s *env) {
		app := s.application(super, "0.0.1", 2, "eu-west")
		app.Spec.Template.Strategy.Steps[0].ReadinessGates = []string{"example.com/Verified"}
		name := s.applied(app)
		s.names = append(s.names, "RELEASE", name)
		s.eventually("the Release waits for others", func() error {
			rel := &shipper.Release{}
			err := world.management.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, rel)
			if err == nil && (rel.Status.Strategy == nil || rel.Status.Strategy.State.WaitingForReadiness != shipper.StrategyStateTrue) {
				err = fmt.Errorf("it says %+v", rel.Status.Strategy)
			}
			return err
		})
	},
	"RELEASE, whose check errors is undecided": func(s *env) {
		none := int32(0)
		s.must(world.management.Create(s.ctx, &shipper.Check{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "errors"},
			Spec: shipper.CheckSpec{
				ConsecutiveErrorLimit: &none, Pass: "share < 0.01",
				Prometheus: &shipper.PrometheusCheck{Queries: map[string]shipper.CheckQuery{"share": "vector(0)"}},
			},
		}))
		app := s.application(super, "0.0.1", 2, "eu-west")
		app.Spec.Template.Strategy.Steps[0].Checks = []shipper.StepCheck{{Check: "errors"}}
		name := s.applied(app)
		s.names = append(s.names, "RELEASE", name)
		s.eventually("the check is undecided", func() error {
			rel := &shipper.Release{}
			err := world.management.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, rel)
			c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseAdvancing)
			if err == nil && (c == nil || c.Reason != shipper.AdvancingCheckUndecided) {
				err = fmt.Errorf("it says %+v", c)
			}
			return err
		})
	},
	"super-server, whose second step goes on after 10m": func(s *env) {
		s.achieved(s.applied(s.application(super, "0.0.1", 2, "eu-west")), 0)
		app := s.application(super, "0.0.2", 2, "eu-west")
		steps := app.Spec.Template.Strategy.Steps
		steps[0].Gate, steps[1].Name, steps[1].After = &shipper.StepGate{}, "quarter", "10m"
		s.achieved(s.applied(app), 0)
	},
	"super-server, whose Service a user edited on eu-1": func(s *env) {
		s.names = append(s.names, "eu-1", west)
		app := s.application(super, "0.0.1", 2, "eu-west")
		app.Spec.DriftPolicy = shipper.DriftReport
		app.Spec.Template.Chart.Name = "test-nginx"
		name := s.applied(app)
		s.achieved(name, 0)
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "test-nginx-prod"}}
		s.must(world.applications[west].Patch(s.ctx, service, client.RawPatch(types.JSONPatchType,
			[]byte(`[{"op":"replace","path":"/spec/ports/0/port","value":8099}]`))))
		s.eventually("the drift is reported", func() error {
			it := &shipper.InstallationTarget{}
			err := world.management.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, it)
			if err == nil && (len(it.Status.Clusters) == 0 || it.Status.Clusters[0].Drift == nil) {
				err = fmt.Errorf("it says %+v", it.Status.Clusters)
			}
			return err
		})
	},
	"super-server on eu-1": func(s *env) {
		s.names = append(s.names, "eu-1", west)
		s.achieved(s.applied(s.application(super, "0.0.1", 2, "eu-west")), 0)
	},
	"super-server on eu-1 and eu-2, and its repository": func(s *env) {
		s.names = append(s.names, "eu-1", west, "eu-2", east, "default/", s.namespace+"/")
		s.achieved(s.applied(s.application(super, "0.0.1", 2, "eu-west", "us-east")), 0)
		s.types(`export HTTPS_PROXY=$(cat "$FLEET/shipper/proxy") SSL_CERT_FILE=$FLEET/shipper/charts.crt`)
	},
	"RELEASE on CLUSTER": func(s *env) {
		name := s.applied(s.application(super, "0.0.1", 2, "eu-west"))
		s.names = append(s.names, "RELEASE", name, "CLUSTER", west)
		s.achieved(name, 0)
	},
	"a release web on eu-west-1": func(s *env) {
		s.alone()
		s.achieved(s.applied(s.application("web", "0.0.1", 2, "eu-west")), 0)
		s.Cleanup(func() { s.types("shipperctl clusters uncordon " + west) })
	},
	"a release on eu-west-1 that is to move to eu-west-2": func(s *env) {
		name := s.applied(s.application("web", "0.0.1", 2, "eu-west"))
		s.moved(name, 2)
		s.names = append(s.names, "NAME", name, "eu-west-2", east)
	},
	"eu-west-2 is a cluster": func(s *env) { s.names = append(s.names, "eu-west-2", east) },
	"a cluster eu-west-2 whose credentials are refused": func(s *env) {
		s.alone()
		credentials := map[string][]byte{"token": []byte("expired"), "ca.crt": world.fleet.Applications[1].Config.CAData}
		made, err := join(s.ctx, "eu-west-2", "eu-west", credentials, shipper.ClusterSchedulerSettings{Unschedulable: true})
		s.must(err)
		s.Cleanup(func() {
			for _, o := range made {
				s.must(world.management.Delete(context.Background(), o))
			}
		})
	},
	"a cluster in the region local":  func(*env) {},
	"the clusters.yaml of the fleet": (*env).clustersFile,
	"a fleet with a release, and its clusters.yaml": func(s *env) {
		s.achieved(s.applied(s.application(super, "0.0.1", 2, "eu-west")), 0)
		s.clustersFile()
	},
	"the ID of this management cluster": func(s *env) {
		identity := &corev1.ConfigMap{}
		s.must(world.management.Get(s.ctx, client.ObjectKey{Namespace: shipper.SystemNamespace, Name: "shipper-identity"}, identity))
		s.names = append(s.names, `"ID"`, `"`+identity.Data["id"]+`"`)
	},
	"rehearsed by the server": func(s *env) {
		s.names = append(s.names, "kubectl delete ", "kubectl delete --dry-run=server ")
	},
	"a namespace fairytale-land": func(s *env) { s.namespaced("fairytale-land") },
	"a namespace shop":           func(s *env) { s.namespaced("shop") },
	"a namespace work":           func(s *env) { s.namespaced("work") },
	"folders of shells": func(s *env) {
		s.must(os.MkdirAll(filepath.Join(s.folder, ".config", "fish", "completions"), 0o700))
		s.types(fmt.Sprintf("HOME=%s; fpath=(. %s)", quoted(s.folder), quoted(s.folder)))
	},
	"the folder of the example": func(*env) {},
	"the folder of the example, and super-server": func(s *env) {
		s.achieved(s.applied(s.application(super, "0.0.1", 3, "local")), 0)
	},
}

// clustersFile copies the clusters.yaml of the fleet.
func (s *env) clustersFile() {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(filepath.Dir(world.fleet.Kubeconfig), "clusters.yaml"))
	s.must(err)
	s.file("clusters.yaml", string(text))
}

// namespaced creates a namespace with this name.
func (s *env) namespaced(name string) {
	s.Helper()
	err := world.management.Create(s.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	s.must(client.IgnoreAlreadyExists(err))
}

// weekend creates the block of docs/blocks.md, shifted so that it is not in effect now.
func (s *env) weekend() {
	at := metav1.NewTime(time.Now().Add(72 * time.Hour).Truncate(time.Second))
	until := metav1.NewTime(at.Add(62 * time.Hour))
	s.blocked(shipper.GlobalBlocksNamespace, "weekend", "joe@example.com", shipper.RolloutBlockSpec{
		Message: "no rollouts over the weekend", Schedule: &shipper.RolloutBlockSchedule{Start: &at, End: &until},
	})
}

// incident creates a block that expires.
func (s *env) incident() {
	s.blocked(shipper.GlobalBlocksNamespace, "incident-4711", "ann@example.com", shipper.RolloutBlockSpec{
		Message: "the load balancers of eu-west are being looked at", TTL: &metav1.Duration{Duration: 2 * time.Hour}, RequireOverrideReason: true,
	})
}

// joinLocal joins a cluster in the region local: one of the fleet under another name.
func joinLocal(ctx context.Context) error {
	secret := &corev1.Secret{}
	if err := world.management.Get(ctx, client.ObjectKey{Namespace: shipper.SystemNamespace, Name: east}, secret); err != nil {
		return err
	}
	_, err := join(ctx, "kind-app", "local", secret.Data, shipper.ClusterSchedulerSettings{})
	return err
}

// join creates one more Cluster for the API server of an existing one, and returns all objects that it created.
func join(
	ctx context.Context, name, region string, credentials map[string][]byte, scheduler shipper.ClusterSchedulerSettings,
) ([]client.Object, error) {
	other := &shipper.Cluster{}
	if err := world.management.Get(ctx, client.ObjectKey{Name: east}, other); err != nil {
		return nil, err
	}
	made := []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: shipper.SystemNamespace, Name: name}, Data: credentials},
		&shipper.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       shipper.ClusterSpec{Region: region, APIMaster: other.Spec.APIMaster, Capabilities: []string{}, Scheduler: scheduler},
		},
	}
	for _, o := range made {
		if err := client.IgnoreAlreadyExists(world.management.Create(ctx, o)); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// TestWhatIsGiven fails for entries of givens that no document uses, and for givens without an entry.
func TestWhatIsGiven(t *testing.T) {
	said := map[string]bool{}
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			said[b.given] = true
			if b.given != "" && givens[b.given] == nil {
				t.Errorf("%s:%d: givens has no entry %q", p.name, b.line, b.given)
			}
		}
	}
	for words := range givens {
		if !said[words] {
			t.Errorf("no document says that %q is given", words)
		}
	}
}
