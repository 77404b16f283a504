// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// The Services of the chart blue-green.
const (
	production = "blue-green-prod"
	preview    = "blue-green-preview"
)

// tested is the condition that the team's tests set: the preview step waits for it.
const tested = "example.com/Tested"

// blueGreen shows a rollout that goes on by itself.
func blueGreen(s *fixture) []chapter {
	return []chapter{
		{"A management cluster is set up, two application clusters join", s.join},
		{"Messages go to Slack", s.notify},
		{"Blue: the first Release serves at once", s.blue},
		{"Green: previewed in both clusters, behind a gate", s.green},
		{"The switch, in one turn in each cluster; blue stands by and goes", s.switched},
		{"A RolloutBlock holds an automatic step", s.heldStep},
		{"A broken image: the deadline takes it back", s.broken},
		{"Slack has received messages", s.slackReceived},
	}
}

// applyBlueGreen applies the Application with a note that differs by version, and further fields of its strategy and values.
func (s *fixture) applyBlueGreen(ctx context.Context, note, strategy, preview, values string) error {
	manifest := fmt.Sprintf(`apiVersion: shipper.booking.com/v1alpha1
kind: Application
metadata:
  name: %s
spec:
  template:
    chart: {name: blue-green, repoUrl: %s, version: 0.0.1}
    clusterRequirements: {regions: [{name: eu-west}, {name: us-east}]}
    values: {replicaCount: 3, note: %s%s}
    strategy:
      firstRelease: Immediate%s
      steps:
      - {name: preview,  capacity: {contender: 50,  incumbent: 100}, traffic: {contender: 0,   incumbent: 100}, %s}
      - {name: switched, capacity: {contender: 100, incumbent: 100}, traffic: {contender: 100, incumbent: 0}, after: 3s}
      - {name: full on,  capacity: {contender: 100, incumbent: 0},   traffic: {contender: 100, incumbent: 0}}
`, application, s.charts.URL, note, values, strategy, preview)
	return s.applyManifest(ctx, "app.yaml", manifest)
}

// applyManifest writes a file, and applies it with kubectl.
func (s *fixture) applyManifest(ctx context.Context, name, manifest string) error {
	file := filepath.Join(s.dir, name)
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	_, err := s.show(ctx, s.kubectl, "apply", "-f", file)
	return err
}

// advancing waits until a Release at a step says how it advances.
func (s *fixture) advancing(ctx context.Context, release string, step int32, reason string) error {
	want := fmt.Sprintf("step %d, %s", step, reason)
	err := s.await(ctx, patience, "how "+release+" advances", want, func(ctx context.Context) (string, error) {
		rel := &shipper.Release{}
		if err := s.management.Get(ctx, client.ObjectKey{Namespace: namespace, Name: release}, rel); err != nil {
			return "", err
		}
		c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseAdvancing)
		if c == nil || rel.Status.ObservedGeneration != rel.Generation {
			return "not said yet", nil
		}
		return fmt.Sprintf("step %d, %s", rel.Spec.TargetStep, c.Reason), nil
	})
	if err == nil {
		s.fact("%s: %s", release, want)
	}
	return err
}

// serve waits until both Services have endpoints of these numbers, in each cluster, of the incumbent and the contender.
func (s *fixture) serve(ctx context.Context, active, shown string, releases ...string) error {
	for service, want := range map[string]string{production: active, preview: shown} {
		err := s.await(ctx, patience, "endpoints of "+service, s.each(want), s.endpointsOf(service, releases...))
		if err != nil {
			return err
		}
	}
	s.fact("in each cluster production has %s endpoints, the preview %s (blue+green)", active, shown)
	return nil
}

func (s *fixture) blue(ctx context.Context) error {
	for _, role := range []string{"shipper:view", "shipper:edit"} {
		dev := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "dev-" + strings.TrimPrefix(role, "shipper:")},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "dev"}},
		}
		if err := s.management.Create(ctx, dev); err != nil {
			return fmt.Errorf("letting dev edit: %w", err)
		}
	}
	if err := s.applyBlueGreen(ctx, "blue", "", "gate: {}, readinessGates: ["+tested+"]", ""); err != nil {
		return err
	}
	var err error
	if s.incumbent, err = s.newRelease(ctx, 1); err != nil {
		return err
	}
	if err := s.reached(ctx, s.incumbent, "full on, complete"); err != nil {
		return err
	}
	return s.serve(ctx, "3", "3", s.incumbent)
}

// green is previewed; a developer cannot pass its gate before it is tested.
func (s *fixture) green(ctx context.Context) error {
	if err := s.applyBlueGreen(ctx, "green", "", "gate: {}, readinessGates: ["+tested+"]", ""); err != nil {
		return err
	}
	var err error
	if s.contender, err = s.newRelease(ctx, 2); err != nil {
		return err
	}
	if err := s.advancing(ctx, s.contender, 0, shipper.AdvancingChecking); err != nil {
		return err
	}
	if err := s.serve(ctx, "3+0", "0+2", s.incumbent, s.contender); err != nil {
		return err
	}
	words := []string{"step 0 (preview) is a gate and is not achieved", tested, "the verb skip"}
	err = s.refused(ctx, s.kubectl, words, "patch", "rel", s.contender, "--as=dev", "--type=merge", "-p", `{"spec":{"targetStep":1}}`)
	if err != nil {
		return err
	}
	s.fact("the gate held")
	_, err = s.show(ctx, s.kubectl, "patch", "rel", s.contender, "--subresource=status", "--type=json", "-p",
		`[{"op":"add","path":"/status/conditions/-","value":{"type":"`+tested+`","status":"True"}}]`)
	if err != nil {
		return err
	}
	return s.advancing(ctx, s.contender, 0, shipper.AdvancingAwaitingCommand)
}

func (s *fixture) switched(ctx context.Context) error {
	if _, err := s.show(ctx, s.shipperctl, "rollout", "advance", application, "-n", namespace); err != nil {
		return err
	}
	if err := s.serve(ctx, "0+3", "0+3", s.incumbent, s.contender); err != nil {
		return err
	}
	if err := s.await(ctx, patience, "ready pods of blue", s.each("3"), s.readyPods(s.incumbent)); err != nil {
		return err
	}
	s.fact("the pods of blue stand by: %s", s.each("3"))
	if _, err := s.show(ctx, s.shipperctl, "rollout", "status", application, "-n", namespace); err != nil {
		return err
	}
	if err := s.reached(ctx, s.contender, "full on, complete"); err != nil {
		return err
	}
	if err := s.await(ctx, patience, "ready pods of blue", s.each("0"), s.readyPods(s.incumbent)); err != nil {
		return err
	}
	s.fact("3 s later they went, without a command")
	return nil
}

// heldStep has a version that goes from preview to full on by itself. A block holds it before the switch.
func (s *fixture) heldStep(ctx context.Context) error {
	if err := s.applyBlueGreen(ctx, "teal", "", "after: 3s", ""); err != nil {
		return err
	}
	s.incumbent = s.contender
	var err error
	if s.contender, err = s.newRelease(ctx, 3); err != nil {
		return err
	}
	if err := s.advancing(ctx, s.contender, 0, shipper.AdvancingSoaking); err != nil {
		return err
	}
	rb := &shipper.RolloutBlock{
		ObjectMeta: metav1.ObjectMeta{Namespace: shipper.GlobalBlocksNamespace, Name: "dns-outage"},
		Spec: shipper.RolloutBlockSpec{
			Message: "DNS issues, troubleshooting in progress", Author: shipper.RolloutBlockAuthor{Type: "user", Name: "jdoe"},
		},
	}
	if err := s.management.Create(ctx, rb); err != nil {
		return fmt.Errorf("creating the rollout block: %w", err)
	}
	if err := s.advancing(ctx, s.contender, 0, shipper.AdvancingHeldByBlock); err != nil {
		return err
	}
	if _, err := s.show(ctx, s.kubectl, "get", "rel", s.contender); err != nil {
		return err
	}
	if _, err := s.show(ctx, s.kubectl, "-n", shipper.GlobalBlocksNamespace, "delete", "rb", "dns-outage"); err != nil {
		return err
	}
	if err := s.reached(ctx, s.contender, "full on, complete"); err != nil {
		return err
	}
	return s.serve(ctx, "0+3", "0+3", s.incumbent, s.contender)
}

// broken has an image that cannot be pulled. The Release is given up, and the same manifest refused.
func (s *fixture) broken(ctx context.Context) error {
	const failing = "\n      progressDeadline: 30s\n      onFailure: Abort"
	apply := func() error {
		return s.applyBlueGreen(ctx, "red", failing, "after: 0s", ", image: {tag: broken}")
	}
	if err := apply(); err != nil {
		return err
	}
	s.incumbent = s.contender
	var err error
	if s.contender, err = s.newRelease(ctx, 4); err != nil {
		return err
	}
	if err := s.advancing(ctx, s.contender, 0, shipper.AdvancingMoving); err != nil {
		return err
	}
	if _, err := s.show(ctx, s.shipperctl, "rollout", "status", application, "-n", namespace); err != nil {
		return err
	}
	s.fact("the clock of the deadline runs for 30 s")
	if err := s.await(ctx, patience, "releases of the Application", "3", func(ctx context.Context) (string, error) {
		history, err := s.history(ctx, application)
		return fmt.Sprint(len(history)), err
	}); err != nil {
		return err
	}
	s.fact("%s had no ready pods for 30 s, and was aborted", s.contender)
	if err := s.serve(ctx, "3", "3", s.incumbent); err != nil {
		return err
	}
	if err := apply(); err == nil || !strings.Contains(err.Error(), "exit status 1") {
		return differs("applying the same manifest again", "a refusal", fmt.Sprint(err))
	}
	s.fact("the same manifest was refused")
	return nil
}
