// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

func newApprove(o *options) *cobra.Command {
	var reject bool
	var reason string
	cmd := &cobra.Command{
		Use:   "approve APPLICATION",
		Short: "Approve the step that the newest release waits at, or refuse it",
		Long: "Approve the step that the newest release waits at, or refuse it, by an Approval in your name. The verb approve on the\n" +
			"release is needed, and the user who asked for the release cannot approve it. It counts until the release is moved.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if reject && reason == "" {
				return cli.WithCode(cli.Misused, errors.New("--reason is missing: say why the step is refused, others will read it"))
			}
			if err := checkReason(reason); err != nil {
				return err
			}
			c, _, rels, err := o.read(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			a, err := approvalOf(rels[len(rels)-1], reject, reason)
			if err != nil {
				return err
			}
			if err := c.Create(cmd.Context(), a); err != nil {
				return fmt.Errorf("creating an approval of release %s: %w", a.Spec.Release, err)
			}
			fmt.Fprintln(cmd.OutOrStdout(), saidOf(a))
			return nil
		},
	}
	cmd.Flags().BoolVar(&reject, "reject", false, "refuse the step instead: nothing passes until that is taken back, or the release is moved")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for others to read; 256 characters at most")
	return cmd
}

// approvalOf is the Approval of the step that a Release is at.
func approvalOf(rel *shipper.Release, reject bool, reason string) (*shipper.Approval, error) {
	if !rel.Spec.Environment.Strategy.AsksForApprovals() {
		return nil, fmt.Errorf("release %s needs no approvals: no gate and no wave of its strategy asks for any", rel.Name)
	}
	a := &shipper.Approval{
		ObjectMeta: metav1.ObjectMeta{Namespace: rel.Namespace, GenerateName: fmt.Sprintf("%s-%d-", rel.Name, rel.Spec.TargetStep)},
		Spec:       shipper.ApprovalSpec{Release: rel.Name, Step: &rel.Spec.TargetStep, Reason: reason},
	}
	if reject {
		a.Spec.Decision = shipper.DecisionReject
	}
	return a, nil
}

func saidOf(a *shipper.Approval) string {
	verb := "approved"
	if a.Spec.Decision == shipper.DecisionReject {
		verb = "refused"
	}
	return fmt.Sprintf("step %d of release %s is %s by %s", *a.Spec.Step, a.Spec.Release, verb, a.Spec.By.Username)
}
