// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/position"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

func newApprove(o *options) *cobra.Command {
	var reject bool
	var reason string
	cmd := &cobra.Command{
		Use:   "approve APPLICATION",
		Short: "Approve the step or the wave that the newest release waits at",
		Long: "Approve the step or the wave that the newest release waits at, by an Approval in your name. The verb approve on the release\n" +
			"is needed, and the user who asked for the release cannot approve it. It counts until the release is moved. It says which wave it\n" +
			"approves, and approves no other.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.decide(cmd, args[0], reject, reason) },
	}
	cmd.Flags().BoolVar(&reject, "reject", false, "reject instead, as shipperctl rollout reject does")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for others to read; 256 characters at most")
	return cmd
}

// newReject returns reject, or the command by its name in earlier versions, which is hidden.
func newReject(o *options, name string) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:    name + " APPLICATION",
		Hidden: name != "reject",
		Short:  "Reject the step or the wave that the newest release waits at",
		Long: "Reject the step or the wave that the newest release waits at, by an Approval in your name whose decision is Reject. It takes\n" +
			"the verb approve on the release. Approvals do not open the step until you delete that Approval or move the release.\n" +
			"`shipperctl rollout abort` gives the release up.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.decide(cmd, args[0], true, reason) },
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for others to read; 256 characters at most; required")
	if name != "reject" {
		cmd.Deprecated = "use reject"
	}
	return cmd
}

// decide approves or rejects the position that the newest Release of an Application waits at.
func (o *options) decide(cmd *cobra.Command, app string, reject bool, reason string) error {
	if reject && reason == "" {
		return cli.WithCode(cli.Misused, errors.New("--reason is missing: say why you reject the step, others will read it"))
	}
	if err := checkReason(reason); err != nil {
		return err
	}
	c, _, rels, err := o.read(cmd.Context(), app)
	if err != nil {
		return err
	}
	rel := rels[len(rels)-1]
	a, err := approvalOf(rel, reject, reason)
	if err != nil {
		return err
	}
	if err := c.Create(cmd.Context(), a); err != nil {
		return fmt.Errorf("creating an approval of release %s: %w", a.Spec.Release, err)
	}
	fmt.Fprintln(cmd.OutOrStdout(), saidOf(a, rel))
	return nil
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
	if position.HasWaves(rel) {
		a.Spec.Wave = new(position.Of(rel).Wave)
	}
	if begins(rel) {
		a.Spec.Task = shipper.ApprovalBefore
	}
	if reject {
		a.Spec.Decision = shipper.DecisionReject
	}
	return a, nil
}

// begins reports whether a Release waits for the approvals by which its wave begins. Which are given, the Approval says: those of its step
// do not count for them.
func begins(rel *shipper.Release) bool {
	p, at := rel.Status.Progress, position.Of(rel)
	return p != nil && p.Step == at.Step && p.Wave == at.Wave && p.AwaitsBeginning()
}

// asked are the approvals that a Release waits for, those by which its wave begins first; nil where it asks for none. p may be nil.
func (p *progressView) asked(rel *shipper.Release) *shipper.ReleaseApprovals {
	switch {
	case p == nil:
		return nil
	case begins(rel):
		return p.BeforeApprovals
	}
	return p.Approvals
}

// saidOf says what an Approval of a Release, as it was read, has decided.
func saidOf(a *shipper.Approval, rel *shipper.Release) string {
	at := position.Of(rel).In(rel.Spec.Environment.Strategy)
	if a.Spec.Task == shipper.ApprovalBefore {
		at = "the beginning of wave " + position.WaveName(rel.Spec.Environment.Strategy, position.Of(rel).Wave)
	}
	if a.Spec.Decision == shipper.DecisionReject {
		return fmt.Sprintf("%s of release %s is rejected by %s, until approval %s is deleted: kubectl delete appr %s -n %s", at, a.Spec.Release,
			a.Spec.By.Username, a.Name, a.Name, a.Namespace)
	}
	return fmt.Sprintf("%s of release %s is approved by %s", at, a.Spec.Release, a.Spec.By.Username)
}
