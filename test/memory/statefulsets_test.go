// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// images are those of Pods, in the order of their names.
func images(t *testing.T, c *kubernetes.Clientset) string {
	t.Helper()
	pods := podsOf(t, c)
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	var out []string
	for _, p := range pods {
		out = append(out, p.Spec.Containers[0].Image)
	}
	return strings.Join(out, " ")
}

// TestAStatefulSetFollowsItsPartition is what was tried on a real controller, as test/integration does, too.
func TestAStatefulSetFollowsItsPartition(t *testing.T) {
	in(t, Options{}, func(t *testing.T, _ *Server, c *kubernetes.Clientset) {
		sets := c.AppsV1().StatefulSets("shop")
		of := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db"}}
		of.Spec.Replicas, of.Spec.ServiceName = ptr.To[int32](4), "db"
		like := deploymentOf("old", 4)
		of.Spec.Selector, of.Spec.Template = like.Spec.Selector, like.Spec.Template
		if _, err := sets.Create(t.Context(), of, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		becomes := func(what, pods, status string) {
			t.Helper()
			time.Sleep(5 * time.Minute)
			now, err := sets.Get(t.Context(), "db", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			s := now.Status
			is := fmt.Sprintf("%d %d, one template: %t", s.AvailableReplicas, s.UpdatedReplicas, s.CurrentRevision == s.UpdateRevision)
			if got := images(t, c); got != pods || is != status {
				t.Errorf("%s: %s (%s), want %s (%s)", what, got, is, pods, status)
			}
		}
		write := func(image string, partition int32) {
			t.Helper()
			now, err := sets.Get(t.Context(), "db", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			now.Spec.Template.Spec.Containers[0].Image = image
			now.Spec.UpdateStrategy.RollingUpdate.Partition = &partition
			if _, err := sets.Update(t.Context(), now, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		becomes("created", "old old old old", "4 4, one template: true")
		write("new", 2)
		becomes("a partition of 2", "old old new new", "4 2, one template: false")
		write("new", 3)
		becomes("a partition of 3", "old old new new", "4 2, one template: false")
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "db-2"}}
		if err := c.CoreV1().Pods("shop").EvictV1(t.Context(), eviction); err != nil {
			t.Fatal(err)
		}
		becomes("evicted", "old old old new", "4 1, one template: false")
		write("old", 0)
		becomes("the old template", "old old old old", "4 4, one template: true")
		now, err := sets.Get(t.Context(), "db", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		now.Spec.ServiceName = "other"
		if _, err := sets.Update(t.Context(), now, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
			t.Errorf("another serviceName: %v", err)
		}
	})
}

func TestADaemonSetReplacesItsPod(t *testing.T) {
	in(t, Options{}, func(t *testing.T, _ *Server, c *kubernetes.Clientset) {
		of := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "agent"}}
		like := deploymentOf("old", 1)
		of.Spec.Selector, of.Spec.Template = like.Spec.Selector, like.Spec.Template
		if _, err := c.AppsV1().DaemonSets("shop").Create(t.Context(), of, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got := images(t, c); got != "old" {
			t.Errorf("Pods: %s", got)
		}
		now, err := c.AppsV1().DaemonSets("shop").Get(t.Context(), "agent", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		now.Spec.Template.Spec.Containers[0].Image = "new"
		if _, err := c.AppsV1().DaemonSets("shop").Update(t.Context(), now, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		now, err = c.AppsV1().DaemonSets("shop").Get(t.Context(), "agent", metav1.GetOptions{})
		if s := now.Status; err != nil || images(t, c) != "new" || s.UpdatedNumberScheduled != 1 || s.NumberAvailable != 1 {
			t.Errorf("%v, Pods: %s, %+v", err, images(t, c), s)
		}
	})
}
