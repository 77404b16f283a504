// SPDX-License-Identifier: Apache-2.0

package block

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// thousand are a thousand blocks, no two with the same window: awake now or not, and selecting all or one tier.
func thousand(awake, all bool) []*shipper.RolloutBlock {
	out := make([]*shipper.RolloutBlock, 1000)
	for i := range out {
		b := aBlock("global", fmt.Sprintf("freeze-%d", (i*577)%1000))
		w := window(fmt.Sprintf("%d %d * * 1-5", i%60, i/60), "1h", "Europe/Amsterdam")
		if awake {
			w.Duration.Duration = 24 * time.Hour
		}
		b.Spec.Schedule = &shipper.RolloutBlockSchedule{
			Start: &metav1.Time{Time: noon.AddDate(-1, 0, 0)}, Windows: []shipper.RolloutBlockWindow{w},
		}
		b.Spec.Scope = &shipper.RolloutBlockScope{
			Applications: &metav1.LabelSelector{
				MatchLabels:      map[string]string{"tier": "500"},
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: "In", Values: []string{"a", "b"}}},
			},
			Regions: []string{"us-east", "eu-west"}, Charts: []string{"nginx"},
		}
		if !all {
			b.Spec.Scope.Applications.MatchLabels["tier"] = fmt.Sprint(i)
		}
		out[i] = b
	}
	return out
}

func BenchmarkJudge(b *testing.B) {
	app := App{Name: "shop", Labels: []map[string]string{{"tier": "500", "team": "a"}}}
	template := &shipper.ReleaseEnvironment{Chart: shipper.Chart{Name: "nginx"}}
	template.ClusterRequirements.Regions = []shipper.RegionRequirement{{Name: "eu-west"}}
	change := app.Edit(nil, template)
	for _, bm := range []struct {
		name   string
		blocks []*shipper.RolloutBlock
		want   int
	}{
		{"1000 scheduled, scoped blocks, 60 apply", thousand(false, true), 60},
		{"1000 scheduled, scoped blocks, one applies", thousand(true, false), 1},
		{"1000 scheduled, scoped blocks, all apply", thousand(true, true), 1000},
	} {
		b.Run(bm.name, func(b *testing.B) {
			if got := len(Judge(bm.blocks, nil, change, noon).Effective); got != bm.want {
				b.Fatalf("%d are in the way, want %d", got, bm.want)
			}
			b.ReportAllocs()
			for b.Loop() {
				Judge(bm.blocks, nil, change, noon)
			}
		})
	}
}

func BenchmarkWhen(b *testing.B) {
	blocks := thousand(false, true)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := When(blocks[i%len(blocks)], noon); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWhenWithoutEnd is the slowest schedule: many windows that follow one another for ever.
func BenchmarkWhenWithoutEnd(b *testing.B) {
	for _, duration := range []string{"1m", "8784h"} {
		b.Run(duration, func(b *testing.B) {
			block := aBlock("global", "for-ever")
			block.Spec.Schedule = &shipper.RolloutBlockSchedule{}
			for i := range 32 {
				w := window(fmt.Sprintf("* * * * %d", i%7), duration, oddZones[i%len(oddZones)])
				block.Spec.Schedule.Windows = append(block.Spec.Schedule.Windows, w)
			}
			for b.Loop() {
				if _, err := When(block, noon); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
