// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/test/await"
)

func TestKubeletsThatDieAreStartedAgain(t *testing.T) {
	cluster := shared.Applications[0]
	c := app(t)
	cluster.mu.Lock()
	for _, p := range cluster.others {
		if strings.HasSuffix(p.Name, "-kwok") {
			if err := p.Signal(syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
	}
	cluster.mu.Unlock()
	where := namespace(t, c)
	create(t, c, deployment(where, "nginx:1", 2))
	available(t, c, where, 2)
	if err := cluster.failure(); err != nil {
		t.Error(err)
	}
}

// TestAClusterIsPutBack also checks that controllers work afterwards, although their caches had newer objects. It does not run in parallel:
// other tests of the cluster would lose what they wrote.
func TestAClusterIsPutBack(t *testing.T) {
	past := shared.Applications[0]
	c := clientOf(t, past)
	where := namespace(t, c)
	d := deployment(where, "nginx:1", 2)
	create(t, c, d)
	available(t, c, where, 2)

	then, err := past.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	later := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: where, Name: "later"}}
	create(t, c, later)
	// A patch, since controllers write its status meanwhile.
	one := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":1}}`))
	if err := c.Patch(t.Context(), d, one); err != nil {
		t.Fatal(err)
	}
	available(t, c, where, 1)

	if err := past.Restore(t.Context(), then); err != nil {
		t.Fatal(err)
	}
	if err := gone(t.Context(), c, later); err != nil {
		t.Error(err)
	}
	updated := version(t, d)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil || version(t, d) >= updated {
		t.Errorf("the Deployment has version %s, want one before %d (error: %v)", d.ResourceVersion, updated, err)
	}
	available(t, c, where, 2)
	again := deployment(where, "nginx:2", 3)
	again.Name = "again"
	create(t, c, again)
	available(t, c, where, 5)

	if _, err := shared.Management.Snapshot(); !errors.Is(err, errShared) {
		t.Errorf("a snapshot of what is shared: %v", err)
	}
	if err := shared.Management.Restore(t.Context(), then); err == nil {
		t.Error("a cluster takes the snapshot of another")
	}
}

// available waits for a number of running Pods.
func available(t *testing.T, c client.Client, namespace string, want int) {
	t.Helper()
	await.Eventually(t, fmt.Sprintf("%d pods", want), func(ctx context.Context) error {
		list, err := pods(ctx, c, namespace)
		running := 0
		for _, pod := range list {
			if pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning {
				running++
			}
		}
		if err == nil && running != want {
			err = fmt.Errorf("there are %d", running)
		}
		return err
	})
}

// version returns the resource version of an object.
func version(t *testing.T, of client.Object) int {
	t.Helper()
	n, err := strconv.Atoi(of.GetResourceVersion())
	if err != nil {
		t.Fatal(err)
	}
	return n
}
