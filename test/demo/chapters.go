// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/test/pod"
)

// patience is how long the story waits for a step of a rollout. It is a bound, not an expectation: on a busy machine, Shipper may be
// started again meanwhile.
const patience = 5 * time.Minute

// join sets the clusters up with shipperctl and starts the two binaries.
func (s *fixture) join(ctx context.Context) error {
	if err := s.setUp(ctx); err != nil {
		return err
	}
	if err := s.joinClusters(ctx, s.regions); err != nil {
		return err
	}
	_, err := s.show(ctx, s.kubectl, "get", "clusters")
	return err
}

// startShipper starts the webhook and the reconciler with the rights their Pod would have.
func (s *fixture) startShipper(ctx context.Context, port int) error {
	var err error
	s.pod, err = pod.Start(ctx, pod.Options{Management: s.fleet.Management, Bin: "bin", Dir: s.dir, WebhookPort: port})
	if err != nil {
		return err
	}
	s.fact("shipper-webhook and shipper-reconciler are ready, running as service account %s", shipper.ManagementServiceAccount)
	return nil
}

// apply applies the quick-start Application with kubectl and reads what the gate made of it.
func (s *fixture) apply(ctx context.Context) error {
	out, err := s.applyApplication(ctx, "~0.0", `{steps: [`+staging+`, `+fullOn+`]}`)
	if err != nil {
		return err
	}
	if !strings.Contains(out, "Warning:") || !strings.Contains(out, application+"-") {
		return differs("kubectl apply", "warnings that name the version resolved and the release this makes", out)
	}
	app := &shipper.Application{}
	if err := s.management.Get(ctx, client.ObjectKey{Namespace: namespace, Name: application}, app); err != nil {
		return err
	}
	if app.Spec.Template.Chart.Version != "0.0.1" || app.Annotations[shipper.AppChartVersionRawAnnotation] != "~0.0" {
		return differs("the chart's version", "0.0.1, resolved from ~0.0", fmt.Sprintf("%s, resolved from %s",
			app.Spec.Template.Chart.Version, app.Annotations[shipper.AppChartVersionRawAnnotation]))
	}
	s.fact("the constraint ~0.0 was resolved in place to %s", app.Spec.Template.Chart.Version)
	if s.incumbent, err = s.newRelease(ctx, 1); err != nil {
		return err
	}
	if err := s.reached(ctx, s.incumbent, "staging, waiting for command"); err != nil {
		return err
	}
	_, err = s.show(ctx, s.kubectl, "get", "app,rel,it,ct,tt")
	return err
}

// rollOut takes the first release to its last step and counts what runs.
func (s *fixture) rollOut(ctx context.Context) error {
	if err := s.counted(ctx, s.incumbent, "1", s.endpoints(s.incumbent), "0"); err != nil {
		return err
	}
	if err := s.step(ctx, s.incumbent, 1); err != nil {
		return err
	}
	if err := s.reached(ctx, s.incumbent, "full on, complete"); err != nil {
		return err
	}
	return s.counted(ctx, s.incumbent, "3", s.endpoints(s.incumbent), "3")
}

// canary rolls the next version of the chart out to half of capacity and traffic.
func (s *fixture) canary(ctx context.Context) error {
	next, err := charts.Get(service, "0.0.2")
	if err != nil {
		return err
	}
	s.charts.Publish(next)
	if _, err := s.applyApplication(ctx, "0.0.2", `{steps: [`+staging+`, `+half+`, `+fullOn+`]}`); err != nil {
		return err
	}
	if s.contender, err = s.newRelease(ctx, 2); err != nil {
		return err
	}
	if err := s.reached(ctx, s.contender, "staging, waiting for command"); err != nil {
		return err
	}
	if err := s.counted(ctx, s.contender, "1", s.endpoints(s.incumbent, s.contender), "3+0"); err != nil {
		return err
	}
	if err := s.step(ctx, s.contender, 1); err != nil {
		return err
	}
	if err := s.reached(ctx, s.contender, "50/50, waiting for command"); err != nil {
		return err
	}
	return s.counted(ctx, s.contender, "2", s.endpoints(s.incumbent, s.contender), "2+2")
}

// block creates a global RolloutBlock, measures how soon it holds, and shows both refusals.
func (s *fixture) block(ctx context.Context) error {
	if err := s.createBlock(ctx, 2); err != nil {
		return err
	}

	words := []string{"rollout-blocks-global/dns-outage", "DNS issues, troubleshooting in progress", "jdoe", "kubectl annotate"}
	if err := s.refused(ctx, s.kubectl, words, "patch", "rel", s.contender, "--type=merge", "-p", `{"spec":{"targetStep":2}}`); err != nil {
		return err
	}
	s.fact("the patch of targetStep was refused")
	file, err := s.writeApplication("0.0.2", `{steps: [`+fullOn+`]}`)
	if err != nil {
		return err
	}
	if err := s.refused(ctx, s.kubectl, words, "apply", "-f", file); err != nil {
		return err
	}
	s.fact("the changed Application was refused")
	blocked := "True rollouts blocked by: rollout-blocks-global/dns-outage"
	if err := s.await(ctx, patience, "Blocked of the Application", blocked,
		s.condition(&shipper.Application{}, application, shipper.ApplicationBlocked)); err != nil {
		return err
	}
	if err := s.await(ctx, patience, "Blocked of the Release", blocked,
		s.condition(&shipper.Release{}, s.contender, shipper.ReleaseBlocked)); err != nil {
		return err
	}
	s.fact("Application and Release say: Blocked %s", blocked)
	return s.counted(ctx, s.contender, "2", s.endpoints(s.incumbent, s.contender), "2+2")
}

// createBlock creates the RolloutBlock, and measures how soon it holds the contender back from its next step.
func (s *fixture) createBlock(ctx context.Context, next int) error {
	rb := &shipper.RolloutBlock{
		ObjectMeta: metav1.ObjectMeta{Namespace: shipper.GlobalBlocksNamespace, Name: "dns-outage"},
		Spec: shipper.RolloutBlockSpec{
			Message: "DNS issues, troubleshooting in progress",
			Author:  shipper.RolloutBlockAuthor{Type: "user", Name: "jdoe"},
		},
	}
	created := time.Now()
	if err := s.management.Create(ctx, rb); err != nil {
		return fmt.Errorf("creating the rollout block: %w", err)
	}
	held, err := s.firstRefusal(ctx, next)
	if err != nil {
		return err
	}
	s.fact("%s/%s exists, and was first held against a rollout %d ms after its creation was asked for",
		rb.Namespace, rb.Name, held.Sub(created).Milliseconds())
	return nil
}

// firstRefusal asks, without effect, for the next step until it is refused.
func (s *fixture) firstRefusal(ctx context.Context, next int) (time.Time, error) {
	rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: s.contender}}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"targetStep":%d}}`, next))
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		err := s.management.Patch(ctx, rel, patch, client.DryRunAll)
		switch {
		case apierrors.IsForbidden(err):
			return time.Now(), nil
		case err != nil:
			return time.Time{}, fmt.Errorf("asking for the next step: %w", err)
		}
	}
	return time.Time{}, differs("a step under a block", "refused within "+patience.String(), "it still goes through")
}

// override breaks the glass for one Release, retreats, and lets the block go.
func (s *fixture) override(ctx context.Context) error {
	if _, err := s.show(ctx, s.kubectl, "annotate", "rel", s.contender,
		shipper.RolloutBlockOverrideAnnotation+"=rollout-blocks-global/dns-outage"); err != nil {
		return err
	}
	if err := s.step(ctx, s.contender, 0); err != nil {
		return err
	}
	if err := s.reached(ctx, s.contender, "staging, waiting for command"); err != nil {
		return err
	}
	if err := s.counted(ctx, s.contender, "1", s.endpoints(s.incumbent, s.contender), "3+0"); err != nil {
		return err
	}
	overriding := namespace + "/" + s.contender
	if err := s.await(ctx, patience, "the block's status.overrides.release", overriding, func(ctx context.Context) (string, error) {
		rb := &shipper.RolloutBlock{}
		err := s.management.Get(ctx, client.ObjectKey{Namespace: shipper.GlobalBlocksNamespace, Name: "dns-outage"}, rb)
		return rb.Status.Overrides.Release, err
	}); err != nil {
		return err
	}
	if _, err := s.show(ctx, s.kubectl, "get", "rb", "-A", "-o", "wide"); err != nil {
		return err
	}
	s.fact("the block names who overrides it: %s", overriding)
	if _, err := s.show(ctx, s.kubectl, "-n", shipper.GlobalBlocksNamespace, "delete", "rb", "dns-outage"); err != nil {
		return err
	}
	if err := s.await(ctx, patience, "Blocked of the Application", "False",
		s.condition(&shipper.Application{}, application, shipper.ApplicationBlocked)); err != nil {
		return err
	}
	s.fact("the block is gone: Blocked turned False")
	return nil
}

// abort deletes the contender at 50/50 and finds the incumbent whole and the contender gone.
func (s *fixture) abort(ctx context.Context) error {
	if err := s.step(ctx, s.contender, 1); err != nil {
		return err
	}
	if err := s.reached(ctx, s.contender, "50/50, waiting for command"); err != nil {
		return err
	}
	if _, err := s.show(ctx, s.kubectl, "delete", "rel", s.contender); err != nil {
		return err
	}
	if err := s.counted(ctx, s.incumbent, "3", s.endpoints(s.incumbent), "3"); err != nil {
		return err
	}
	if err := s.await(ctx, patience, "what is left of the contender", s.each("nothing"), s.leftovers(s.contender)); err != nil {
		return err
	}
	s.fact("nothing of %s is left in either cluster", s.contender)
	if err := s.reached(ctx, s.incumbent, "full on, complete"); err != nil {
		return err
	}
	if err := s.await(ctx, patience, "the Application's template", "0.0.1 of 1 release", func(ctx context.Context) (string, error) {
		app := &shipper.Application{}
		err := s.management.Get(ctx, client.ObjectKey{Namespace: namespace, Name: application}, app)
		return fmt.Sprintf("%s of %d release", app.Spec.Template.Chart.Version, len(app.Status.History)), err
	}); err != nil {
		return err
	}
	s.fact("the Application's template is the incumbent's again")
	_, err := s.show(ctx, s.kubectl, "get", "app,rel")
	return err
}
