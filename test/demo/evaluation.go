// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// productionBlock is a block of all rollouts in the namespace of production.
const productionBlock = `apiVersion: shipper.booking.com/v1alpha1
kind: RolloutBlock
metadata: {name: dns, namespace: shop-prod}
spec: {message: DNS is being moved until four, author: {type: user, name: sre}}
`

func (s *fixture) blockRun(ctx context.Context) error {
	if err := s.applyManifest(ctx, "block.yaml", productionBlock); err != nil {
		return err
	}
	if err := s.approve(ctx, "bob"); err != nil {
		return err
	}
	err := s.await(ctx, patience, "what holds the run", "DNS is being moved until four", func(ctx context.Context) (string, error) {
		run := &shipper.SequenceRun{}
		if err := s.management.Get(ctx, client.ObjectKey{Namespace: shop, Name: s.contender}, run); err != nil {
			return "", err
		}
		c := shipper.FindCondition(run.Status.Conditions, shipper.RunBlocked)
		if c == nil || c.Status != corev1.ConditionTrue || !strings.Contains(c.Message, "DNS is being moved until four") {
			return toldRun(run), nil
		}
		return "DNS is being moved until four", nil
	})
	if err != nil {
		return err
	}
	s.fact("the block holds the run, and the run says so")
	if _, err := s.show(ctx, s.shipperctl, "shipyard", "status", s.contender, "-n", shop); err != nil {
		return err
	}
	if _, err := s.show(ctx, s.kubectl, "delete", "rolloutblock", "dns", "-n", shopProd); err != nil {
		return err
	}
	if err := s.becomesMeasured(ctx, 0.01); err != nil {
		return err
	}
	if err := s.becomes(ctx, s.contender, "Passed, approval pass, deployment pass, evaluation pass, release pass"); err != nil {
		return err
	}
	s.incumbent, err = s.completes(ctx, shopProd, web, 2)
	return err
}

// becomesMeasured waits until the run in production evaluates its Release, which has such a share of errors.
func (s *fixture) becomesMeasured(ctx context.Context, errors float64) error {
	release := ""
	err := s.await(ctx, patience, "the Release of "+s.contender, "made", func(ctx context.Context) (string, error) {
		run := &shipper.SequenceRun{}
		if err := s.management.Get(ctx, client.ObjectKey{Namespace: shop, Name: s.contender}, run); err != nil {
			return "", err
		}
		for _, task := range run.Status.Tasks {
			if task.Name == shipyard.TaskDeployment && task.Release != "" {
				release = strings.TrimPrefix(task.Release, shopProd+"/")
				return "made", nil
			}
		}
		return toldRun(run), nil
	})
	for _, cluster := range s.fleet.Applications {
		s.metrics[cluster.Name].app.Set(shopProd, release, perSecond, errors, 20*time.Millisecond)
	}
	return err
}

func (s *fixture) failEvaluation(ctx context.Context) error {
	run, err := s.starts(ctx, "0.0.2", "--values", "note=bad")
	if err != nil {
		return err
	}
	if s.contender, err = s.follows(ctx, run, "delivery"); err != nil {
		return err
	}
	if err := s.becomes(ctx, s.contender, "Running, approval waiting"); err != nil {
		return err
	}
	for _, user := range []string{"ann", "bob"} {
		if err := s.approve(ctx, user); err != nil {
			return err
		}
	}
	if err := s.becomesMeasured(ctx, 0.5); err != nil {
		return err
	}
	if err := s.becomes(ctx, s.contender, "Failed, approval pass, deployment pass, evaluation fail, release skipped"); err != nil {
		return err
	}
	back, err := s.follows(ctx, s.contender, "rollback")
	if err != nil {
		return err
	}
	if err := s.becomes(ctx, back, "Passed, rollback pass"); err != nil {
		return err
	}
	serving, err := s.completes(ctx, shopProd, web, 2)
	if err != nil {
		return err
	}
	if serving != s.incumbent {
		return differs("what serves in production", s.incumbent, serving)
	}
	if _, err := s.show(ctx, s.shipperctl, "shipyard", "list", "-n", shop); err != nil {
		return err
	}
	_, err = s.show(ctx, s.shipperctl, "audit", "-n", shop)
	return err
}
