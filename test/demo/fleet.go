// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// work is the namespace that the story places, with all its content.
const work = "work"

// fleetRegions are the clusters of the story. The last one joins later.
var fleetRegions = []region{
	{"eu-1", "eu"}, {"us-1", "us"}, {"ap-1", "ap"}, {"ap-2", "ap"},
}

// content is what the namespace has.
const content = `apiVersion: v1
kind: Namespace
metadata: {name: work}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: greeting, namespace: work}
data: {text: hello}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: readers, namespace: work}
`

// placing is the Application that places it. driftPolicy Correct writes again what others change.
const placing = `apiVersion: shipper.booking.com/v1alpha1
kind: Application
metadata: {name: work, namespace: work}
spec:
  driftPolicy: Correct
  template:
    resources: {select: [{kind: Namespace, name: work}]}
    clusterRequirements: {placement: {type: PickAll}}
    strategy: {rolling: {maxUnavailable: 1}}
`

// fleetRights let Shipper read the namespace, keep its content, and make Namespaces in the clusters.
const fleetRights = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: shipper-namespaces
  labels: {shipper.booking.com/aggregate-to-application: "true"}
rules: [{apiGroups: [""], resources: [namespaces], verbs: [create, patch, delete]}]
`

// placeFleet shows a namespace that follows a fleet.
func placeFleet(s *fixture) []chapter {
	return []chapter{
		{"A management cluster is set up, three application clusters join", s.joinThree},
		{"A namespace is placed on all clusters", s.placeNamespace},
		{"A fourth cluster joins, and gets it", s.joinFourth},
		{"A cluster is tainted: its objects stay, new Applications keep off", s.taintOne},
		{"A cluster fails: the others go on, and it follows when it is back", s.failOne},
		{"A user edits a placed object: the edit is reported and corrected", s.driftOne},
	}
}

// joinThree joins all clusters but the last.
func (s *fixture) joinThree(ctx context.Context) error {
	if err := s.setUp(ctx); err != nil {
		return err
	}
	for _, a := range s.fleet.Applications {
		file := filepath.Join(s.dir, "rights.yaml")
		if err := os.WriteFile(file, []byte(fleetRights), 0o600); err != nil {
			return fmt.Errorf("writing rights: %w", err)
		}
		if out, err := s.kubectl.run(ctx, "", "--kubeconfig", a.Kubeconfig, "apply", "-f", file); err != nil {
			return fmt.Errorf("granting rights in %s: %s: %w", a.Name, out, err)
		}
	}
	s.fact("administrators let Shipper make Namespaces in the clusters")
	return s.joinClusters(ctx, s.regions[:3])
}

// placeNamespace applies content and Application, and waits for the content everywhere.
func (s *fixture) placeNamespace(ctx context.Context) error {
	if err := s.applyManifest(ctx, "content.yaml", content); err != nil {
		return err
	}
	for _, role := range []string{shipper.ResourceSelectorRole, shipper.ValuesKeeper} {
		if _, err := s.show(ctx, s.kubectl, "-n", work, "create", "rolebinding", role, "--clusterrole="+role,
			"--serviceaccount="+shipper.SystemNamespace+":"+shipper.ManagementServiceAccount); err != nil {
			return err
		}
	}
	fmt.Fprintln(s.out, indented(placing))
	if err := s.applyManifest(ctx, "placing.yaml", placing); err != nil {
		return err
	}
	if err := s.greets(ctx, "hello", s.applications[:3]); err != nil {
		return err
	}
	s.fact("the namespace and its content are in eu-1, us-1 and ap-1")
	_, err := s.show(ctx, s.kubectl, "-n", work, "get", "app,rel,it,rsn")
	return err
}

// joinFourth joins the last cluster.
func (s *fixture) joinFourth(ctx context.Context) error {
	if err := s.joinClusters(ctx, s.regions[3:]); err != nil {
		return err
	}
	since := time.Now()
	if err := s.greets(ctx, "hello", s.applications); err != nil {
		return err
	}
	s.fact("ap-2 has it %.1f s after it is in service, without a new Release", time.Since(since).Seconds())
	return nil
}

// taintOne taints ap-2 and changes the content, and then explains a new Application.
func (s *fixture) taintOne(ctx context.Context) error {
	patch := `{"spec":{"taints":[{"key":"maintenance","value":"soon"}]}}`
	if _, err := s.show(ctx, s.kubectl, "patch", "cluster", "ap-2", "--type=merge", "-p", patch); err != nil {
		return err
	}
	if err := s.greet(ctx, "good morning"); err != nil {
		return err
	}
	if err := s.greets(ctx, "good morning", s.applications); err != nil {
		return err
	}
	s.fact("ap-2 keeps what is placed there, and gets the change")
	manifest := strings.ReplaceAll(strings.ReplaceAll(placing, "name: work,", "name: other,"), "driftPolicy: Correct", "driftPolicy: Report")
	file := filepath.Join(s.dir, "other.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		return fmt.Errorf("writing a manifest: %w", err)
	}
	out, err := s.show(ctx, s.shipperctl, "placement", "explain", "-f", file)
	if err != nil {
		return err
	}
	if !strings.Contains(out, "Tainted") {
		return differs("shipperctl placement explain", "ap-2 is Tainted", out)
	}
	s.fact("another Application would keep off ap-2, and shipperctl says why")
	return nil
}

// failOne stops the API server of us-1, changes the content, and starts it again.
func (s *fixture) failOne(ctx context.Context) error {
	down := s.fleet.Applications[1]
	if err := down.StopAPIServer(); err != nil {
		return err
	}
	s.fact("the API server of %s is down", down.Name)
	if err := s.greet(ctx, "good evening"); err != nil {
		return err
	}
	others := append([]applicationCluster{s.applications[0]}, s.applications[2:]...)
	if err := s.greets(ctx, "good evening", others); err != nil {
		return err
	}
	s.fact("the other clusters have the change")
	if _, err := s.show(ctx, s.kubectl, "get", "clusters"); err != nil {
		return err
	}
	if err := down.StartAPIServer(ctx); err != nil {
		return err
	}
	if err := s.greets(ctx, "good evening", s.applications); err != nil {
		return err
	}
	s.fact("%s is back, and has the change too", down.Name)
	return nil
}

// driftOne edits the placed ConfigMap in eu-1.
func (s *fixture) driftOne(ctx context.Context) error {
	if _, err := s.show(ctx, s.kubectl, "--kubeconfig", s.fleet.Applications[0].Kubeconfig, "-n", work, "patch", "configmap", "greeting",
		"--type=merge", "-p", `{"data":{"text":"edited"}}`); err != nil {
		return err
	}
	if err := s.greets(ctx, "good evening", s.applications); err != nil {
		return err
	}
	s.fact("the edit in eu-1 was taken back")
	_, err := s.show(ctx, s.shipperctl, "placement", "explain", "work", "-n", work)
	return err
}

// greet changes the content in the management cluster.
func (s *fixture) greet(ctx context.Context, text string) error {
	_, err := s.show(ctx, s.kubectl, "-n", work, "patch", "configmap", "greeting", "--type=merge",
		"-p", fmt.Sprintf(`{"data":{"text":%q}}`, text))
	return err
}

// greets waits until the placed ConfigMap has a text in these clusters.
func (s *fixture) greets(ctx context.Context, text string, in []applicationCluster) error {
	want := make([]string, len(in))
	for i := range in {
		want[i] = in[i].name + ": " + text
	}
	return s.await(ctx, 2*patience, "the greeting in the clusters", strings.Join(want, ", "), func(ctx context.Context) (string, error) {
		var seen []string
		for _, a := range in {
			cm := &corev1.ConfigMap{}
			err := a.client.Get(ctx, client.ObjectKey{Namespace: work, Name: "greeting"}, cm)
			if err != nil && !apierrors.IsNotFound(err) {
				return "", err
			}
			seen = append(seen, a.name+": "+cm.Data["text"])
		}
		return strings.Join(seen, ", "), nil
	})
}
