// SPDX-License-Identifier: Apache-2.0

// Package shipyard is `shipperctl shipyard`: it starts, shows, approves and stops runs of a Shipyard's sequences, and binds the
// ServiceAccount that they write with.
package shipyard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/printable"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

type options struct {
	cli.Flags
	clock clock.PassiveClock
}

// NewCommand returns `shipyard` with its sub-commands.
func NewCommand(clock clock.PassiveClock) *cobra.Command {
	o := &options{clock: clock}
	cmd := cli.Group("shipyard", "Deliver versions through the stages of a Shipyard",
		newRun(o), newList(o), newStatus(o), newWait(o), newApprove(o), newPause(o), newResume(o), newAbort(o), newRetry(o), newShow(o),
		newBind(o))
	o.RegisterDaily(cmd.PersistentFlags())
	return cmd
}

// maxReason bounds a reason, in characters, as the schema does.
const maxReason = 256

// checkReason refuses a reason that is missing, or longer than objects have room for.
func checkReason(flag, reason string) error {
	switch n := len([]rune(reason)); {
	case n == 0:
		return cli.WithCode(cli.Misused, fmt.Errorf("--%s is missing: say why, others will read it", flag))
	case n > maxReason:
		return cli.WithCode(cli.Misused, fmt.Errorf("--%s has %d characters: %d are the most", flag, n, maxReason))
	}
	return nil
}

// Names of the kinds that can precede the name of an object, as kubectl has them.
var (
	runKinds      = []string{"sr", "sequencerun", "sequenceruns", "sequencerun." + shipper.GroupName, "sequenceruns." + shipper.GroupName}
	shipyardKinds = []string{"sy", "shipyard", "shipyards", "shipyard." + shipper.GroupName, "shipyards." + shipper.GroupName}
)

// keyOf reads the name of an object, which can have its kind or its namespace before it.
func keyOf(namespace, arg string, kinds []string) client.ObjectKey {
	before, name, both := strings.Cut(arg, "/")
	switch {
	case !both:
		return client.ObjectKey{Namespace: namespace, Name: arg}
	case slices.Contains(kinds, before):
		return client.ObjectKey{Namespace: namespace, Name: name}
	}
	return client.ObjectKey{Namespace: before, Name: name}
}

// readRun reads the run that an argument names.
func (o *options) readRun(ctx context.Context, arg string) (client.WithWatch, *shipper.SequenceRun, error) {
	c, namespace, err := o.Client()
	if err != nil {
		return nil, nil, err
	}
	run := &shipper.SequenceRun{}
	key := keyOf(namespace, arg, runKinds)
	if err := c.Get(ctx, key, run); err != nil {
		return nil, nil, fmt.Errorf("reading run %s: %w", key, err)
	}
	return c, run, nil
}

// isFinished reports whether a run has ended.
func isFinished(run *shipper.SequenceRun) bool {
	return shipper.ConditionTrue(run.Status.Conditions, shipper.RunFinished)
}

// failure is the error that a finished run is for scripts; nil for pass and warning.
func failure(run *shipper.SequenceRun) error {
	if run.Status.Result != shipper.ResultFail {
		return nil
	}
	text := fmt.Sprintf("run %s has failed", run.Name)
	if run.Status.Completion != "" && run.Status.Completion != shipper.CompletionSucceeded {
		text += " (" + string(run.Status.Completion) + ")"
	}
	if run.Status.Message != "" {
		text += ": " + printable.OneLine(run.Status.Message)
	}
	return cli.WithCode(cli.Failed, errors.New(text))
}
