// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func newApprove(o *options) *cobra.Command {
	var reject bool
	var reason, task string
	cmd := &cobra.Command{
		Use:   "approve RUN",
		Short: "Approve or reject the task that a run waits at",
		Long: "Approve or reject the task that a run waits at, by an Approval in your name. It takes the verb approve on shipyards/STAGE,\n" +
			"or on shipyards. The user who requested the run cannot approve it, unless the task has allowRequester. One rejection fails the\n" +
			"task. An Approval is of the version and the values that the run has now.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if reject || reason != "" {
				if err := checkReason("reason", reason); err != nil {
					return err
				}
			}
			c, namespace, err := o.Client()
			if err != nil {
				return err
			}
			a := approvalOf(keyOf(namespace, args[0], runKinds), task, reject, reason)
			if err := c.Create(cmd.Context(), a); err != nil {
				return fmt.Errorf("creating an approval of run %s: %w", a.Spec.Run, err)
			}
			fmt.Fprintln(cmd.OutOrStdout(), saidOf(a))
			return nil
		},
	}
	cmd.Flags().BoolVar(&reject, "reject", false, "reject the task instead: it fails, and the run with it; it takes --reason")
	cmd.Flags().StringVar(&task, "task", "", "task to approve; approval#2 is the second approval (default the one that waits)")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for others to read; 256 characters at most")
	return cmd
}

// approvalOf is the Approval of a task of a run.
func approvalOf(run client.ObjectKey, task string, reject bool, reason string) *shipper.Approval {
	a := &shipper.Approval{
		ObjectMeta: metav1.ObjectMeta{Namespace: run.Namespace, GenerateName: run.Name + "-"},
		Spec:       shipper.ApprovalSpec{Run: run.Name, Task: task, Decision: shipper.DecisionApprove, Reason: reason},
	}
	if reject {
		a.Spec.Decision = shipper.DecisionReject
	}
	return a
}

func saidOf(a *shipper.Approval) string {
	verb := "approved"
	if a.Spec.Decision == shipper.DecisionReject {
		verb = "rejected"
	}
	return fmt.Sprintf("%s: %s task %s of run %s", cmp.Or(a.Spec.By.Username, "you"), verb, cmp.Or(a.Spec.Task, "approval"), a.Spec.Run)
}
