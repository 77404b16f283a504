// SPDX-License-Identifier: Apache-2.0

package block

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// The zones have clocks that are put forward and back by an hour, half an hour, two hours and a day; in summer, in winter,
// in Ramadan and for good.
var oddZones = []string{
	"", "Europe/Amsterdam", "Europe/Dublin", "America/New_York", "America/Sao_Paulo", "Africa/Casablanca", "Asia/Kathmandu",
	"Asia/Pyongyang", "Australia/Lord_Howe", "Antarctica/Troll", "Pacific/Apia", "Pacific/Kwajalein", "Etc/GMT+12",
}

// oracle is the expected schedule, computed minute by minute.
type oracle struct {
	from   time.Time
	active []bool // minute by minute
}

// margin is how long before from the oracle starts, for windows that are open at from.
const margin = 9 * 24 * time.Hour

func ask(t testing.TB, b *shipper.RolloutBlock, from time.Time, minutes int) oracle {
	t.Helper()
	o := oracle{from: from, active: make([]bool, minutes)}
	s := b.Spec.Schedule
	for i := range o.active {
		o.active[i] = len(s.Windows) == 0
	}
	for _, w := range s.Windows {
		zone, err := time.LoadLocation(w.TimeZone)
		if err != nil {
			t.Fatal(err)
		}
		crons, err := cron.ParseStandard("TZ=UTC " + w.Cron)
		if err != nil {
			t.Fatal(err)
		}
		clock := func(t time.Time) time.Time {
			l := t.In(zone)
			return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), 0, 0, time.UTC)
		}
		begin := from.Add(-margin)
		shown := clock(begin.Add(-overADay))
		for now := begin.Add(-overADay); now.Before(begin); now = now.Add(time.Minute) {
			if c := clock(now); c.After(shown) {
				shown = c
			}
		}
		for now := begin; now.Before(from.Add(time.Duration(minutes) * time.Minute)); now = now.Add(time.Minute) {
			c := clock(now)
			if !c.After(shown) {
				continue // it has shown this before
			}
			if next := crons.Next(shown); !next.IsZero() && !next.After(c) {
				o.open(now, w.Duration.Duration)
			}
			shown = c
		}
	}
	for i := range o.active {
		o.active[i] = o.active[i] && within(b, from.Add(time.Duration(i)*time.Minute))
	}
	return o
}

func (o oracle) open(at time.Time, duration time.Duration) {
	first := int(at.Sub(o.from) / time.Minute)
	for i := max(0, first); i < min(len(o.active), first+int(duration/time.Minute)); i++ {
		o.active[i] = true
	}
}

func within(b *shipper.RolloutBlock, now time.Time) bool {
	s := b.Spec.Schedule
	return (s.Start == nil || !now.Before(s.Start.Time)) && (s.End == nil || now.Before(s.End.Time)) &&
		(b.Spec.ExpiresAt == nil || now.Before(b.Spec.ExpiresAt.Time)) &&
		(b.Spec.TTL == nil || now.Before(b.CreationTimestamp.Add(b.Spec.TTL.Duration)))
}

// aPlan makes a block whose windows last a week at most, in whole minutes.
func aPlan(r *rand.Rand, around time.Time, zone string) *shipper.RolloutBlock {
	b := aBlock("frontend", "freeze")
	b.CreationTimestamp = metav1.Time{Time: around}
	sometimes := func(p float64) *metav1.Time {
		if r.Float64() > p {
			return nil
		}
		return &metav1.Time{Time: around.Add(time.Duration(r.IntN(6*24*60)-3*24*60) * time.Minute)}
	}
	b.Spec.Schedule = &shipper.RolloutBlockSchedule{Start: sometimes(.2), End: sometimes(.2)}
	b.Spec.ExpiresAt = sometimes(.1)
	if r.Float64() < .1 {
		b.Spec.TTL = &metav1.Duration{Duration: time.Duration(r.IntN(5*24*60)) * time.Minute}
	}
	for range r.IntN(4) {
		b.Spec.Schedule.Windows = append(b.Spec.Schedule.Windows, aWindow(r, zone))
	}
	return b
}

func aWindow(r *rand.Rand, zone string) shipper.RolloutBlockWindow {
	if r.IntN(4) == 0 {
		zone = oddZones[r.IntN(len(oddZones))]
	}
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	durations := []int{1, 5, 30, 60, 90, 24 * 60, 7 * 24 * 60}
	return shipper.RolloutBlockWindow{
		Cron: fmt.Sprintf("%s %s %s * %s",
			pick("0", "*", "*/7", "*/15", "30", fmt.Sprint(r.IntN(60))),
			pick("*", "0", "1", "2", "3", "23", "0-3", "*/4", fmt.Sprint(r.IntN(24))),
			pick("*", "*", "*", "1", "30", "*/2", fmt.Sprint(1+r.IntN(31))),
			pick("*", "*", "*", "SUN", "1-5", "6")),
		Duration: metav1.Duration{Duration: time.Duration(durations[r.IntN(len(durations))]+r.IntN(3)) * time.Minute},
		TimeZone: zone,
	}
}

// aTime is a minute, mostly one near which a clock in that zone is put forward or back.
func aTime(r *rand.Rand) (t time.Time, zone string) {
	t = time.Date(1960+r.IntN(80), time.Month(1+r.IntN(12)), 1+r.IntN(28), r.IntN(24), r.IntN(60), 0, 0, time.UTC)
	zone = oddZones[r.IntN(len(oddZones))]
	if known, err := time.LoadLocation(zone); err == nil && r.IntN(4) > 0 {
		if _, changes := t.In(known).ZoneBounds(); !changes.IsZero() {
			t = changes.UTC().Add(time.Duration(r.IntN(4*60)-2*60) * time.Minute).Truncate(time.Minute)
		}
	}
	return t, zone
}

// TestActiveAgreesWithWhen checks random schedules minute by minute, and from one predicted change to the next.
func TestActiveAgreesWithWhen(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2)) // the same plans every time
	plans := 200
	if testing.Short() {
		plans = 40
	}
	for i := range plans {
		middle, zone := aTime(r)
		b := aPlan(r, middle, zone)
		from, minutes := middle.Add(-24*time.Hour), 2*24*60
		want := ask(t, b, from, minutes)
		for n, active := range want.active {
			now := from.Add(time.Duration(n) * time.Minute)
			if got := Active(b, now); got != active {
				t.Fatalf("plan %d: at %s it is in effect: %v, want %v\n%+v", i, now.Format(time.RFC3339), got, active, b.Spec)
			}
			if second := now.Add(59 * time.Second); Active(b, second) != active {
				t.Fatalf("plan %d: at %s it is in effect: %v\n%+v", i, second.Format(time.RFC3339), !active, b.Spec)
			}
		}
		walk(t, b, want)
	}
}

// walk follows the predicted changes: each is a change, and nothing changes between two of them.
func walk(t *testing.T, b *shipper.RolloutBlock, want oracle) {
	t.Helper()
	end := want.from.Add(time.Duration(len(want.active)) * time.Minute)
	active := func(t time.Time) bool { return want.active[int(t.Sub(want.from)/time.Minute)] }
	for now := want.from; now.Before(end); {
		got, err := When(b, now)
		if err != nil || got.Active != active(now) {
			t.Fatalf("at %s When says %+v, %v\n%+v", now.Format(time.RFC3339), got, err, b.Spec)
		}
		turn, known := got.NextStart, !got.NextStart.IsZero()
		if got.Active {
			turn, known = got.NextEnd, !got.NextEnd.IsZero()
		}
		if known && !turn.Equal(got.Look) {
			t.Fatalf("at %s it turns at %s and is looked at at %s", now, turn, got.Look)
		}
		last := end
		if !got.Look.IsZero() && got.Look.Before(end) {
			last = got.Look
		}
		for ; now.Before(last); now = now.Add(time.Minute) {
			if active(now) != got.Active {
				t.Fatalf("at %s it turned, %+v\n%+v", now.Format(time.RFC3339), got, b.Spec)
			}
		}
		if known && turn.Before(end) && active(turn) == got.Active {
			t.Fatalf("at %s nothing turned, %+v\n%+v", turn.Format(time.RFC3339), got, b.Spec)
		}
		if known && got.Active && !got.NextStart.IsZero() && got.NextStart.Before(end) &&
			(!active(got.NextStart) || active(got.NextStart.Add(-time.Minute))) {
			t.Fatalf("it does not begin again at %s, %+v\n%+v", got.NextStart.Format(time.RFC3339), got, b.Spec)
		}
	}
}
