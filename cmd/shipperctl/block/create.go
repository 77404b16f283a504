// SPDX-License-Identifier: Apache-2.0

package block

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// wanted has the flags of `block create`, which docs/blocks.md explains.
type wanted struct {
	message, start, end, cron, zone, selector, enforcement, policy string
	ttl, duration                                                  time.Duration
	regions, clusters, charts, allow                               []string
	reason, dryRun                                                 bool
}

func (w *wanted) register(flags *pflag.FlagSet) {
	flags.StringVarP(&w.message, "message", "m", "", "why; everybody who is stopped reads it (required)")
	flags.DurationVar(&w.ttl, "ttl", 0, "how long after its creation the block lifts itself for good, for example 2h")
	flags.StringVar(&w.start, "start", "", "when it begins, for example 2026-12-18T17:00:00Z (default at once)")
	flags.StringVar(&w.end, "end", "", "when it ends (default never)")
	flags.StringVar(&w.cron, "cron", "", "when it begins again and again, for example '0 18 * * FRI'; needs --duration")
	flags.DurationVar(&w.duration, "duration", 0, "how long each of these times lasts, for example 62h")
	flags.StringVar(&w.zone, "time-zone", "", "time zone of --cron, for example Europe/Amsterdam (default UTC)")
	flags.StringVarP(&w.selector, "selector", "l", "", "labels of the applications that it stops (default all)")
	flags.StringSliceVar(&w.regions, "regions", nil, "regions that it stops (default all)")
	flags.StringSliceVar(&w.clusters, "clusters", nil, "clusters that it stops (default all)")
	flags.StringSliceVar(&w.charts, "charts", nil, "charts that it stops (default all)")
	flags.StringSliceVar(&w.allow, "allow", nil, "what passes all the same: Abort, Retreat, Rollback")
	flags.StringVar(&w.enforcement, "enforcement", "", "Deny, Warn or Audit (default Deny)")
	flags.StringVar(&w.policy, "override-policy", "", "who may override it: Anyone, Authorized or Nobody (default Authorized)")
	flags.BoolVar(&w.reason, "require-override-reason", false, "overriding it takes a reason")
	flags.BoolVar(&w.dryRun, "dry-run", false, "print the manifest, and create nothing")
}

func newCreate(o *options) *cobra.Command {
	w := &wanted{}
	cmd := &cobra.Command{
		Use:   "create NAME --message WHY",
		Short: "Stop rollouts",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			spec, err := w.spec()
			if err != nil {
				return cli.WithCode(cli.Misused, err)
			}
			c, namespace, err := o.clientAt()
			if err != nil {
				return err
			}
			b := &shipper.RolloutBlock{Spec: spec}
			b.Namespace, b.Name = split(args[0], namespace)
			if w.dryRun {
				return printManifest(cmd, c, b)
			}
			if err := c.Create(cmd.Context(), b); err != nil {
				return fmt.Errorf("creating block %s: %w", block.Name(b), err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "block %s is created: %s\n", block.Name(b), when(b, o.clock.Now()))
			return nil
		},
	}
	w.register(cmd.Flags())
	return cmd
}

// spec is built from the flags. An error names the flag; the API server validates the rest.
func (w *wanted) spec() (shipper.RolloutBlockSpec, error) {
	s := shipper.RolloutBlockSpec{
		Message: w.message, Enforcement: shipper.RolloutBlockEnforcement(w.enforcement),
		OverridePolicy: shipper.RolloutBlockOverridePolicy(w.policy), RequireOverrideReason: w.reason,
	}
	if w.message == "" {
		return s, errors.New("--message is needed: refusals show it")
	}
	if w.ttl != 0 {
		s.TTL = &metav1.Duration{Duration: w.ttl}
	}
	for _, change := range w.allow {
		s.Allow = append(s.Allow, shipper.RolloutBlockChange(change))
	}
	var err error
	if s.Schedule, err = w.schedule(); err != nil {
		return s, err
	}
	s.Scope, err = w.scope()
	return s, err
}

func (w *wanted) schedule() (*shipper.RolloutBlockSchedule, error) {
	var s shipper.RolloutBlockSchedule
	for _, t := range []struct {
		flag, value string
		to          **metav1.Time
	}{{"start", w.start, &s.Start}, {"end", w.end, &s.End}} {
		if t.value == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339, t.value)
		if err != nil {
			return nil, fmt.Errorf("--%s %q is not a time like 2026-12-18T17:00:00Z or 2026-12-18T18:00:00+01:00", t.flag, t.value)
		}
		*t.to = &metav1.Time{Time: at}
	}
	if w.cron != "" {
		window := shipper.RolloutBlockWindow{Cron: w.cron, Duration: metav1.Duration{Duration: w.duration}, TimeZone: w.zone}
		if _, err := block.ParseWindow(window); err != nil {
			return nil, fmt.Errorf("--cron, --duration and --time-zone: %w", err)
		}
		s.Windows = []shipper.RolloutBlockWindow{window}
	} else if w.duration != 0 || w.zone != "" {
		return nil, errors.New("--duration and --time-zone are those of --cron, which is not there; for how long from now on there is --ttl")
	}
	if s.Start == nil && s.End == nil && s.Windows == nil {
		return nil, nil
	}
	return &s, nil
}

func (w *wanted) scope() (*shipper.RolloutBlockScope, error) {
	s := shipper.RolloutBlockScope{Regions: w.regions, Clusters: w.clusters, Charts: w.charts}
	if w.selector != "" {
		selector, err := metav1.ParseToLabelSelector(w.selector)
		if err != nil {
			return nil, fmt.Errorf("--selector %q: %w", w.selector, err)
		}
		s.Applications = selector
	}
	if s.Applications == nil && len(s.Regions)+len(s.Clusters)+len(s.Charts) == 0 {
		return nil, nil
	}
	return &s, nil
}

// printManifest prints a manifest that the API server has accepted in a dry run.
func printManifest(cmd *cobra.Command, c client.Client, b *shipper.RolloutBlock) error {
	if err := c.Create(cmd.Context(), b.DeepCopy(), client.DryRunAll); err != nil {
		return fmt.Errorf("trying block %s: %w", block.Name(b), err)
	}
	b.SetGroupVersionKind(shipper.GroupVersion.WithKind("RolloutBlock"))
	raw, err := yaml.Marshal(struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        map[string]string        `json:"metadata"`
		Spec            shipper.RolloutBlockSpec `json:"spec"`
	}{b.TypeMeta, map[string]string{"namespace": b.Namespace, "name": b.Name}, b.Spec})
	if err != nil {
		return fmt.Errorf("writing the manifest: %w", err)
	}
	_, err = cmd.OutOrStdout().Write(raw)
	return err
}
