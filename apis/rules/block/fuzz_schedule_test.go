// SPDX-License-Identifier: Apache-2.0

package block

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// FuzzSchedule parses windows of any kind, at any time: one that does not parse is in effect, and the predicted changes happen
// at the predicted times.
func FuzzSchedule(f *testing.F) {
	for _, seed := range []struct {
		cron, zone string
		minutes    int64
		at         string
	}{
		{"0 18 * * 5", "Europe/Amsterdam", 62 * 60, "2026-11-20T17:00:00Z"},
		{"30 2 * * *", "Europe/Amsterdam", 60, "2026-03-29T00:59:59Z"},
		{"30 2 * * *", "Europe/Amsterdam", 60, "2026-10-25T00:30:00Z"},
		{"0 0 30 12 *", "Pacific/Apia", 24 * 60, "2011-12-30T09:00:00Z"},
		{"*/15 * * * *", "Australia/Lord_Howe", 20, "2026-04-04T15:00:00Z"},
		{"0 0 29 2 *", "", 24 * 60, "2027-01-01T00:00:00Z"},
		{"@weekly", "UTC", 1, "2026-01-01T00:00:00Z"},
		{"TZ=Asia/Tokyo 0 0 * * *", "", 60, "2026-01-01T00:00:00Z"},
		{"@every 1h", "", 30, "2026-01-01T00:00:00Z"},
		{"0 0 31 2 *", "", 30, "2026-01-01T00:00:00Z"},
		{"* * * * *", "Nowhere/Land", 8784 * 60, "2026-01-01T00:00:00Z"},
	} {
		at, err := time.Parse(time.RFC3339, seed.at)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(seed.cron, seed.zone, seed.minutes, at.Unix())
	}
	f.Fuzz(func(t *testing.T, expression, zone string, minutes, at int64) {
		const earliest, latest = 631152000, 4102444800 // 1990 to 2100
		if at < earliest || at > latest || minutes < -1 || minutes > 10_000*60 {
			t.Skip("no time, or no duration, that anybody would write")
		}
		now := time.Unix(at, 0).UTC()
		w := shipper.RolloutBlockWindow{
			Cron: expression, TimeZone: zone, Duration: metav1.Duration{Duration: time.Duration(minutes) * time.Minute},
		}
		b := &shipper.RolloutBlock{Spec: shipper.RolloutBlockSpec{
			Schedule: &shipper.RolloutBlockSchedule{Windows: []shipper.RolloutBlockWindow{w}},
		}}
		got, err := When(b, now)
		_, wrong := ParseWindow(w)
		if (err == nil) != (wrong == nil) {
			t.Fatalf("the schedule is said to be %v, its window %v", err, wrong)
		}
		if wrong != nil {
			if !got.Active {
				t.Fatalf("%v is not in effect", w)
			}
			return
		}
		holds(t, b, now, got)
	})
}

// holds checks a block's Timing at a time.
func holds(t *testing.T, b *shipper.RolloutBlock, now time.Time, got Timing) {
	t.Helper()
	change := got.NextStart
	if got.Active {
		change = got.NextEnd
	}
	if Active(b, now) != got.Active {
		t.Fatalf("at %s Active is %v and as %v", now, got.Active, !got.Active)
	}
	if change.IsZero() {
		return
	}
	if !change.After(now) {
		t.Fatalf("what changes after %s does so at %s", now, change)
	}
	windows.Clear() // the cache for now must not answer for another time
	if Active(b, change) == got.Active {
		t.Fatalf("at %s, predicted at %s, nothing changes", change, now)
	}
	if Active(b, change.Add(-time.Nanosecond)) != got.Active {
		t.Fatalf("before %s, predicted at %s, it has changed already", change, now)
	}
	if got.Active && !got.NextStart.IsZero() && !Active(b, got.NextStart) {
		t.Fatalf("at %s, predicted at %s, it is not in effect", got.NextStart, now)
	}
}
