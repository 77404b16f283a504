// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// counting answers with nothing, and has the kinds that were asked for.
type counting struct {
	client.Reader
	mu    sync.Mutex
	asked []string
}

func (c *counting) note(o client.ObjectList) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, o.GetObjectKind().GroupVersionKind().Kind)
}

func (c *counting) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	o.SetNamespace(key.Namespace)
	o.SetName(key.Name)
	o.SetResourceVersion("1")
	return nil
}

func (c *counting) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	c.note(list)
	return nil
}

// TestTargetsAreReadOnlyIfThereIsARelease is about the confirmation before the first write to an Application.
func TestTargetsAreReadOnlyIfThereIsARelease(t *testing.T) {
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "web", ResourceVersion: "1"}}
	all := []string{"CapacityTargetList", "InstallationTargetList", "ReleaseList", "TrafficTargetList"}
	for sentence, tc := range map[string]struct {
		h       History
		current bool
		want    []string
	}{
		"a new Application":       {History{}, true, []string{"ReleaseList"}},
		"one with a Release":      {History{All: []*shipper.Release{{}}}, false, all},
		"one with a target alone": {History{targets: map[string][]client.Object{"TrafficTarget": {&shipper.TrafficTarget{}}}}, false, all},
	} {
		live := &counting{}
		got, err := (&Reader{live: live}).Current(t.Context(), app, tc.h, true)
		slices.Sort(live.asked)
		if diff := cmp.Diff(fmt.Sprint(tc.want), fmt.Sprint(live.asked)); diff != "" || got != tc.current || err != nil {
			t.Errorf("%s: current is %t, %v (-want +got)\n%s", sentence, got, err, diff)
		}
	}
}
