// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestAPreviousReleaseThatIsUnhealthy breaks the incumbent under a rollout. The rollout says so, and can go on all the same.
func TestAPreviousReleaseThatIsUnhealthy(t *testing.T) {
	u := begin(t)
	u.applies(u.application(u.Env.Charts.URL, "0.0.1", "stable"))
	previous := u.newest(1)
	u.completes(previous)
	u.breaks(previous)

	u.applies(u.application(u.Env.Charts.URL, "0.0.2", "stable"))
	mending := u.newest(2)
	u.Eventually("what the rollout waits for", "the incumbent", func() (string, error) {
		rel := &shipper.Release{}
		err := world.management.Get(u.Ctx, client.ObjectKey{Namespace: u.Namespace, Name: mending}, rel)
		if rel.Status.Strategy == nil {
			return "nothing yet", err
		}
		var seen []string
		for _, c := range rel.Status.Strategy.Conditions {
			if c.Status != "False" {
				continue
			}
			if strings.HasPrefix(c.Type, "IncumbentAchieved") && c.Reason == shipper.ClustersNotReady &&
				strings.Contains(c.Message, previous) && strings.Contains(c.Message, "in clusters: "+west+": PodsNotReady") {
				return "the incumbent", err
			}
			seen = append(seen, c.Type+" "+c.Message)
		}
		return strings.Join(seen, "\n"), err
	})
	u.describes("ct", previous, "Reason: PodsNotReady Status: False Type: Ready", `Back-off pulling image "nginx:broken"`)

	// A step need not be complete for the next to be asked for.
	u.completes(mending)
	u.Eventually("pods that serve", "6", func() (string, error) { return fmt.Sprint(u.serving(mending)), nil })
	u.describes("ct", previous, append([]string{"Available Replicas: 0"}, well...)...)
}

// breaks gives the Pods of a Release an image that cannot be pulled, behind Shipper's back.
func (u *user) breaks(release string) {
	u.Helper()
	patch := `{"spec":{"template":{"spec":{"containers":[{"name":"test-nginx","image":"nginx:broken"}]}}}}`
	deployment := &appsv1.Deployment{}
	deployment.Namespace, deployment.Name = u.Namespace, release+"-test-nginx"
	broken := client.RawPatch(types.StrategicMergePatchType, []byte(patch))
	u.Must("breaking the deployment", world.applications[west].Patch(u.Ctx, deployment, broken))
	u.Eventually("whether "+release+" is whole", "no", func() (string, error) {
		ct := &shipper.CapacityTarget{}
		err := world.management.Get(u.Ctx, client.ObjectKey{Namespace: u.Namespace, Name: release}, ct)
		if shipper.ConditionTrue(ct.Status.Conditions, shipper.TargetReady) {
			return "yes", err
		}
		return "no", err
	})
}
