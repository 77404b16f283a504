// SPDX-License-Identifier: Apache-2.0

// Package root assembles the command line of shipperctl, and of `kubectl shipper`: kubectl runs kubectl-shipper in the PATH as a
// plugin, and kubectl_complete-shipper to complete its arguments.
package root

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"

	"shipper.dev/shipper/cmd/shipperctl/audit"
	"shipper.dev/shipper/cmd/shipperctl/backup"
	"shipper.dev/shipper/cmd/shipperctl/block"
	"shipper.dev/shipper/cmd/shipperctl/check"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/clusters"
	"shipper.dev/shipper/cmd/shipperctl/convert"
	"shipper.dev/shipper/cmd/shipperctl/health"
	"shipper.dev/shipper/cmd/shipperctl/notification"
	"shipper.dev/shipper/cmd/shipperctl/placement"
	"shipper.dev/shipper/cmd/shipperctl/render"
	"shipper.dev/shipper/cmd/shipperctl/rollout"
	"shipper.dev/shipper/cmd/shipperctl/shipyard"
)

// NewCommand returns shipperctl, writing to out.
func NewCommand(out io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:           "shipperctl",
		Short:         "Set up, back up and tidy up clusters for Shipper, see and stop rollouts",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.SetOut(out)
	cmd.AddCommand(
		clusters.NewCommand(), backup.NewCommand(clock.RealClock{}), clusters.NewCleanCommand(),
		rollout.NewCommand(clock.RealClock{}), block.NewCommand(clock.RealClock{}), block.NewOverrideCommand(clock.RealClock{}),
		render.NewPlanCommand(), clusters.NewListCommand(), render.NewChartCommand(), health.NewCommand(clock.RealClock{}),
		convert.NewCommand(), notification.NewCommand(), check.NewCommand(clock.RealClock{}),
		placement.NewCommand(clock.RealClock{}), shipyard.NewCommand(clock.RealClock{}), audit.NewCommand(clock.RealClock{}), newVersion(),
	)
	cmd.SetGlobalNormalizationFunc(cli.NormalizeFlag)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return cli.WithCode(cli.Misused, explain(cmd, explainFlag(err)))
	})
	each(cmd, printMisuse)
	each(cmd, advise)
	each(cmd, func(cmd *cobra.Command) {
		if lines := examples[cmd.CommandPath()]; lines != nil && cmd.Example == "" {
			cmd.Example = "  " + strings.Join(lines, "\n  ")
		}
	})
	return cmd
}

// each calls do for a command and for those below it.
func each(cmd *cobra.Command, do func(*cobra.Command)) {
	do(cmd)
	for _, below := range cmd.Commands() {
		each(below, do)
	}
}

// advise adds the remedy to errors of a command.
func advise(cmd *cobra.Command) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			err := run(cmd, args)
			if advice := adviceFor(err, cmd.Root().DisplayName()); advice != "" {
				return fmt.Errorf("%w\n%s", err, advice)
			}
			return err
		}
	}
}

// listing has the command that lists the objects of a kind.
var listing = map[string]string{
	"applications":  "`kubectl get app -A` lists those there are; -n says in which namespace it is",
	"releases":      "`%s list release` lists those there are; -n says in which namespace it is",
	"checks":        "`%s check list -A` lists those there are; -n says in which namespace it is",
	"clusters":      "`%s clusters list` lists those there are",
	"notifications": "`kubectl get ntf -A` lists those there are; -n says in which namespace it is",
	"sequenceruns":  "`%s shipyard list -A` lists those there are; NAMESPACE/NAME or -n says in which namespace it is",
	"shipyards":     "`kubectl get sy -A` lists those there are; NAMESPACE/NAME or -n says in which namespace it is",
	"rolloutblocks": "`%s block list -A` lists those there are; NAMESPACE/NAME or -n says in which namespace it is",
}

// adviceFor is pure. name is that of the command line. An error of several lines has its advice already.
func adviceFor(err error, name string) string {
	if err == nil || strings.Contains(err.Error(), "\n") {
		return ""
	}
	var dial *net.OpError
	text := err.Error()
	switch {
	case errors.Is(err, context.Canceled):
		return "it was interrupted: run it again to go on"
	case strings.Contains(text, "failed calling webhook"):
		return "Shipper's webhook does not answer: `" + name + " doctor` says what is broken"
	case meta.IsNoMatchError(err), strings.Contains(text, "the server could not find the requested resource"):
		return "this management cluster is not set up, or your context points to another one: look at `kubectl config current-context`, " +
			"or run `" + name + " clusters setup management`"
	case apierrors.IsNotFound(err):
		if how := listing[kindOf(err)]; strings.Contains(how, "%s") {
			return fmt.Sprintf(how, name)
		} else if !strings.Contains(text, "choose with -n") {
			return how
		}
	case apierrors.IsForbidden(err) && strings.Contains(text, " cannot "):
		return "ask an administrator for the right, or for a role that has it: shipper:view to look, shipper:edit to roll out, " +
			"shipper:approver to approve steps and runs, shipper:promoter to start runs, shipper:sre for blocks and gates; clusters are an " +
			"administrator's"
	case apierrors.IsUnauthorized(err):
		return "the cluster does not accept the credentials of this context: log in again, or choose another with --context"
	case errors.As(err, &dial):
		return "the API server cannot be reached from here: look whether it is up, and whether the context is the one that you mean (--context)"
	}
	return ""
}

// kindOf is the resource in a NotFound error.
func kindOf(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		return status.Status().Details.Kind
	}
	return ""
}

// examples are shown by --help and in docs/cli.md, where a test runs them.
var examples = map[string][]string{
	"shipperctl audit": {
		"shipperctl audit -A --app shop-prod/web --since 168h", "shipperctl audit --kind approval,override -o csv",
	},
	"shipperctl backup prepare":    {"shipperctl backup prepare -v --include-rollout-blocks -f backup.yaml"},
	"shipperctl block create":      {`shipperctl block create year-end -m "closing of the books" --ttl 48h`},
	"shipperctl block lift":        {"shipperctl block lift year-end"},
	"shipperctl block list":        {"shipperctl block list -A"},
	"shipperctl check list":        {"shipperctl check list"},
	"shipperctl clusters check":    {"shipperctl clusters check eu-west-1"},
	"shipperctl clusters cordon":   {"shipperctl clusters cordon eu-west-1"},
	"shipperctl clusters list":     {"shipperctl clusters list"},
	"shipperctl clusters uncordon": {"shipperctl clusters uncordon eu-west-1"},
	"shipperctl list contender":    {"shipperctl list contender --clusters eu-west-1"},
	"shipperctl list release":      {"shipperctl list release -o json"},
	"shipperctl override":          {`shipperctl override super-server --reason "the fix for the outage"`},
	"shipperctl placement explain": {"shipperctl placement explain super-server"},
	"shipperctl plan":              {"shipperctl plan -f app.yaml"},
	"shipperctl rollout abort":     {"shipperctl rollout abort super-server"},
	"shipperctl rollout advance":   {"shipperctl rollout advance super-server"},
	"shipperctl rollout diff":      {"shipperctl rollout diff super-server"},
	"shipperctl rollout history":   {"shipperctl rollout history super-server"},
	"shipperctl rollout retreat":   {"shipperctl rollout retreat super-server"},
	"shipperctl rollout status":    {"shipperctl rollout status super-server", "shipperctl rollout status super-server -o json"},
	"shipperctl shipyard abort":    {`shipperctl shipyard abort web-x7k2p --reason "wrong version"`},
	"shipperctl shipyard approve": {
		"shipperctl shipyard approve web-x7k2p", `shipperctl shipyard approve web-x7k2p --reject --reason "p95 is up"`,
	},
	"shipperctl shipyard bind":   {"shipperctl shipyard bind shop"},
	"shipperctl shipyard list":   {"shipperctl shipyard list --stage production"},
	"shipperctl shipyard pause":  {`shipperctl shipyard pause web-x7k2p --reason "DNS"`},
	"shipperctl shipyard resume": {"shipperctl shipyard resume web-x7k2p"},
	"shipperctl shipyard retry":  {"shipperctl shipyard retry web-x7k2p --from test"},
	"shipperctl shipyard run":    {"shipperctl shipyard run shop --service web --version 1.4.2 --values image.tag=v7 --wait"},
	"shipperctl shipyard show":   {"shipperctl shipyard show shop"},
	"shipperctl shipyard status": {"shipperctl shipyard status web-x7k2p -w"},
	"shipperctl shipyard wait":   {"shipperctl shipyard wait web-x7k2p --follow-ups --timeout 1h"},
	"shipperctl version":         {"shipperctl version --server"},
	"shipperctl doctor":          {"shipperctl doctor"},
}
