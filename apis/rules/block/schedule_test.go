// SPDX-License-Identifier: Apache-2.0

package block

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// at reads a time; the empty text is the zero time.
func at(t testing.TB, text string) time.Time {
	t.Helper()
	if text == "" {
		return time.Time{}
	}
	out, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// when is a point in time of a block's spec.
func when(t testing.TB, text string) *metav1.Time {
	t.Helper()
	if text == "" {
		return nil
	}
	return &metav1.Time{Time: at(t, text)}
}

func window(cron, duration, zone string) shipper.RolloutBlockWindow {
	d, err := time.ParseDuration(duration)
	if err != nil {
		panic(err)
	}
	return shipper.RolloutBlockWindow{Cron: cron, Duration: metav1.Duration{Duration: d}, TimeZone: zone}
}

// plan describes the schedule of a block in words.
type plan struct {
	start, end, expires, ttl string
	windows                  []shipper.RolloutBlockWindow
}

// created is the creation time of the blocks of these tests: a Saturday.
const created = "2026-11-21T12:00:00Z"

func (p plan) block(t testing.TB) *shipper.RolloutBlock {
	t.Helper()
	b := aBlock("frontend", "freeze")
	b.CreationTimestamp = *when(t, created)
	b.Spec.ExpiresAt = when(t, p.expires)
	if p.ttl != "" {
		d, err := time.ParseDuration(p.ttl)
		if err != nil {
			t.Fatal(err)
		}
		b.Spec.TTL = &metav1.Duration{Duration: d}
	}
	if p.start != "" || p.end != "" || p.windows != nil {
		b.Spec.Schedule = &shipper.RolloutBlockSchedule{Start: when(t, p.start), End: when(t, p.end), Windows: p.windows}
	}
	return b
}

// timing is a Timing in words; looks is set only where it is not the next change.
type timing struct {
	active             bool
	start, ends, looks string
}

func (w timing) read(t testing.TB) Timing {
	t.Helper()
	out := Timing{Active: w.active, NextStart: at(t, w.start), NextEnd: at(t, w.ends), Look: at(t, w.looks)}
	switch {
	case w.looks != "":
	case w.active:
		out.Look = out.NextEnd
	default:
		out.Look = out.NextStart
	}
	return out
}

func TestWhen(t *testing.T) {
	nights := window("0 18 * * *", "12h", "")
	weekends := window("0 18 * * FRI", "62h", "Europe/Amsterdam")
	for sentence, tc := range map[string]struct {
		plan plan
		now  string
		want timing
		err  string
	}{
		"a block that says nothing is always in effect": {now: created, want: timing{active: true}},
		"a one-off has not begun": {
			plan: plan{start: "2026-12-20T00:00:00Z", end: "2027-01-02T00:00:00Z"}, now: created,
			want: timing{start: "2026-12-20T00:00:00Z"},
		},
		"a one-off begins at its start": {
			plan: plan{start: "2026-12-20T00:00:00Z", end: "2027-01-02T00:00:00Z"}, now: "2026-12-20T00:00:00Z",
			want: timing{active: true, ends: "2027-01-02T00:00:00Z"},
		},
		"a one-off is over at its end": {
			plan: plan{start: "2026-12-20T00:00:00Z", end: "2027-01-02T00:00:00Z"}, now: "2027-01-02T00:00:00Z",
		},
		"an empty schedule is always in effect": {plan: plan{windows: []shipper.RolloutBlockWindow{}}, now: created, want: timing{active: true}},
		"a start alone never ends":              {plan: plan{start: created}, now: created, want: timing{active: true}},
		"an end alone began long ago": {
			plan: plan{end: "2026-11-22T00:00:00Z"}, now: created, want: timing{active: true, ends: "2026-11-22T00:00:00Z"},
		},
		"an end before the start is never": {plan: plan{start: "2026-12-02T00:00:00Z", end: "2026-12-01T00:00:00Z"}, now: created},
		"an end at the beginning of time has passed": {
			plan: plan{end: "0001-01-01T00:00:00Z"}, now: created,
		},
		"a window is closed in the day": {
			plan: plan{windows: []shipper.RolloutBlockWindow{nights}}, now: created, want: timing{start: "2026-11-21T18:00:00Z"},
		},
		"a window is open from the minute of its cron": {
			plan: plan{windows: []shipper.RolloutBlockWindow{nights}}, now: "2026-11-21T18:00:00Z",
			want: timing{active: true, ends: "2026-11-22T06:00:00Z", start: "2026-11-22T18:00:00Z"},
		},
		"a window is open until its duration is over": {
			plan: plan{windows: []shipper.RolloutBlockWindow{nights}}, now: "2026-11-22T05:59:59Z",
			want: timing{active: true, ends: "2026-11-22T06:00:00Z", start: "2026-11-22T18:00:00Z"},
		},
		"a window is closed the moment its duration is over": {
			plan: plan{windows: []shipper.RolloutBlockWindow{nights}}, now: "2026-11-22T06:00:00Z",
			want: timing{start: "2026-11-22T18:00:00Z"},
		},
		"windows that touch are one": {
			plan: plan{windows: []shipper.RolloutBlockWindow{nights, window("0 6 * * SUN", "6h", "")}}, now: "2026-11-21T20:00:00Z",
			want: timing{active: true, ends: "2026-11-22T12:00:00Z", start: "2026-11-22T18:00:00Z"},
		},
		"windows that overlap are one": {
			plan: plan{windows: []shipper.RolloutBlockWindow{window("0 5 * * SUN", "6h", ""), nights}}, now: "2026-11-21T20:00:00Z",
			want: timing{active: true, ends: "2026-11-22T11:00:00Z", start: "2026-11-22T18:00:00Z"},
		},
		"a window within another does not shorten it": {
			plan: plan{windows: []shipper.RolloutBlockWindow{nights, window("0 20 * * *", "1h", "")}}, now: "2026-11-21T20:30:00Z",
			want: timing{active: true, ends: "2026-11-22T06:00:00Z", start: "2026-11-22T18:00:00Z"},
		},
		"a window that opens again while it is open stays open": {
			plan: plan{windows: []shipper.RolloutBlockWindow{window("*/20 8-16 * * *", "30m", "")}}, now: "2026-11-22T08:00:00Z",
			want: timing{active: true, ends: "2026-11-22T17:10:00Z", start: "2026-11-23T08:00:00Z"},
		},
		"windows of a minute that follow one another all day are one": {
			plan: plan{windows: []shipper.RolloutBlockWindow{window("* 9-16 * * *", "1m", "")}}, now: "2026-11-22T09:00:00Z",
			want: timing{active: true, ends: "2026-11-22T17:00:00Z", start: "2026-11-23T09:00:00Z"},
		},
		"windows without a gap are looked at again where the look ahead ends": {
			plan: plan{windows: []shipper.RolloutBlockWindow{window("* * * * *", "1m", "")}}, now: created,
			want: timing{active: true, looks: "2026-11-22T04:40:00Z"}, // a thousand minutes
		},
		"windows of years without a gap are looked at again in some years": {
			plan: plan{windows: []shipper.RolloutBlockWindow{window("* * * * *", "8784h", "")}}, now: created,
			want: timing{active: true, looks: "2029-11-23T12:00:00Z"},
		},
		"start cuts off a window that is open": {
			plan: plan{start: "2026-11-21T20:00:00Z", windows: []shipper.RolloutBlockWindow{nights}}, now: "2026-11-21T19:00:00Z",
			want: timing{start: "2026-11-21T20:00:00Z"},
		},
		"before its start no window counts": {
			plan: plan{start: "2026-12-24T00:00:00Z", windows: []shipper.RolloutBlockWindow{weekends}}, now: "2026-11-21T19:00:00Z",
			want: timing{start: "2026-12-25T17:00:00Z"},
		},
		"end cuts off a window that is open": {
			plan: plan{end: "2026-11-21T20:00:00Z", windows: []shipper.RolloutBlockWindow{nights}}, now: "2026-11-21T19:00:00Z",
			want: timing{active: true, ends: "2026-11-21T20:00:00Z"},
		},
		"end comes before the next window": {
			plan: plan{end: "2026-11-21T17:00:00Z", windows: []shipper.RolloutBlockWindow{nights}}, now: created,
		},
		"end at the opening of a window leaves nothing of it": {
			plan: plan{end: "2026-11-21T18:00:00Z", windows: []shipper.RolloutBlockWindow{nights}}, now: created,
		},
		"end ends windows that go on without a gap": {
			plan: plan{end: "2026-11-21T13:00:00Z", windows: []shipper.RolloutBlockWindow{window("* * * * *", "1m", "")}}, now: created,
			want: timing{active: true, ends: "2026-11-21T13:00:00Z"},
		},
		"a weekend ends on Monday morning": {
			plan: plan{windows: []shipper.RolloutBlockWindow{weekends}}, now: created,
			want: timing{active: true, ends: "2026-11-23T07:00:00Z", start: "2026-11-27T17:00:00Z"},
		},
		"it expires": {
			plan: plan{expires: "2026-11-22T00:00:00Z"}, now: created, want: timing{active: true, ends: "2026-11-22T00:00:00Z"},
		},
		"once expired it never comes again": {
			plan: plan{expires: "2026-11-22T00:00:00Z", windows: []shipper.RolloutBlockWindow{nights}}, now: "2026-11-22T00:00:00Z",
		},
		"expiry in a window cuts it off": {
			plan: plan{expires: "2026-11-22T00:00:00Z", windows: []shipper.RolloutBlockWindow{nights}}, now: "2026-11-21T18:00:00Z",
			want: timing{active: true, ends: "2026-11-22T00:00:00Z"},
		},
		"its time to live counts from its creation": {
			plan: plan{ttl: "90m"}, now: created, want: timing{active: true, ends: "2026-11-21T13:30:00Z"},
		},
		"at the end of its time to live it is over": {plan: plan{ttl: "90m"}, now: "2026-11-21T13:30:00Z"},
		"the earlier of expiry and time to live counts": {
			plan: plan{ttl: "90m", expires: "2026-11-21T13:00:00Z"}, now: created,
			want: timing{active: true, ends: "2026-11-21T13:00:00Z"},
		},
		"the earlier of time to live and expiry counts": {
			plan: plan{ttl: "30m", expires: "2026-11-21T13:00:00Z"}, now: created,
			want: timing{active: true, ends: "2026-11-21T12:30:00Z"},
		},
		"the end counts where it is earlier than expiry": {
			plan: plan{ttl: "90m", end: "2026-11-21T13:00:00Z"}, now: created,
			want: timing{active: true, ends: "2026-11-21T13:00:00Z"},
		},
		"an unknown time zone is in effect": {
			plan: plan{windows: []shipper.RolloutBlockWindow{nights, window("0 0 * * *", "1h", "Middle/Earth")}}, now: created,
			want: timing{active: true}, err: `window 1: timeZone "Middle/Earth" is not an IANA time zone, like Europe/Amsterdam`,
		},
		"an invalid schedule is in effect, whatever its other fields": {
			plan: plan{start: "2027-01-01T00:00:00Z", end: "2027-01-02T00:00:00Z",
				windows: []shipper.RolloutBlockWindow{window("0 25 * * *", "1h", "")}}, now: created,
			want: timing{active: true}, err: `window 0: cron "0 25 * * *": end of range (25) above maximum (23): 25`,
		},
		"an invalid schedule still expires": {
			plan: plan{ttl: "1h", windows: []shipper.RolloutBlockWindow{window("x", "1h", "")}}, now: created,
			want: timing{active: true, ends: "2026-11-21T13:00:00Z"},
			err:  `window 0: cron "x": expected exactly 5 fields, found 1: [x]`,
		},
		"an invalid schedule that has expired is not in effect": {
			plan: plan{ttl: "1h", windows: []shipper.RolloutBlockWindow{window("x", "1h", "")}}, now: "2026-11-21T13:00:00Z",
			err: `window 0: cron "x": expected exactly 5 fields, found 1: [x]`,
		},
		"a leap day comes every four years": {
			plan: plan{windows: []shipper.RolloutBlockWindow{window("0 0 29 2 *", "24h", "")}}, now: created,
			want: timing{start: "2028-02-29T00:00:00Z"},
		},
		"a leap day that does not come within five years is not known": {
			plan: plan{windows: []shipper.RolloutBlockWindow{window("0 0 29 2 *", "24h", "")}}, now: "2096-03-01T00:00:00Z",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			b, now := tc.plan.block(t), at(t, tc.now)
			got, err := When(b, now)
			if diff := cmp.Diff(tc.want.read(t), got); diff != "" {
				t.Errorf("When (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.err, errorText(err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if active := Active(b, now); active != tc.want.active {
				t.Errorf("Active is %v, want %v", active, tc.want.active)
			}
		})
	}
}

// A block that is validated on creation has no creation time yet.
func TestTimeToLiveOfABlockThatIsNotMadeYet(t *testing.T) {
	b := plan{ttl: "1h"}.block(t)
	b.CreationTimestamp = metav1.Time{}
	if got, err := When(b, noon); err != nil || !cmp.Equal(got, Timing{Active: true}) {
		t.Errorf("got %v, %v", got, err)
	}
}

// turns follows a block's changes through When alone, and lists when it is in effect.
func turns(t testing.TB, b *shipper.RolloutBlock, from time.Time, until time.Time) []string {
	t.Helper()
	var out []string
	for now := from; now.Before(until); {
		got, err := When(b, now)
		if err != nil {
			t.Fatal(err)
		}
		if !got.Active {
			now = got.NextStart
			if now.IsZero() {
				break
			}
			continue
		}
		end := "…"
		if !got.NextEnd.IsZero() {
			end = got.NextEnd.UTC().Format("01-02T15:04Z")
		}
		out = append(out, now.UTC().Format("01-02T15:04Z")+" to "+end)
		if now = got.NextEnd; now.IsZero() {
			break
		}
	}
	return out
}

func TestWindowsGoByTheClocksOfTheirZone(t *testing.T) {
	const amsterdam = "Europe/Amsterdam"
	for sentence, tc := range map[string]struct {
		window shipper.RolloutBlockWindow
		from   string // three days from it on
		want   []string
	}{
		"without a zone it is UTC": {
			window("0 9 * * *", "1h", ""), "2026-03-28T00:00:00Z",
			[]string{"03-28T09:00Z to 03-28T10:00Z", "03-29T09:00Z to 03-29T10:00Z", "03-30T09:00Z to 03-30T10:00Z"},
		},
		"a zone with quarters of hours": {
			window("0 9 * * *", "1h", "Asia/Kathmandu"), "2026-03-28T00:00:00Z",
			[]string{"03-28T03:15Z to 03-28T04:15Z", "03-29T03:15Z to 03-29T04:15Z", "03-30T03:15Z to 03-30T04:15Z"},
		},
		"nine o'clock stays nine o'clock in spring 2026": {
			window("0 9 * * *", "1h", amsterdam), "2026-03-28T00:00:00Z",
			[]string{"03-28T08:00Z to 03-28T09:00Z", "03-29T07:00Z to 03-29T08:00Z", "03-30T07:00Z to 03-30T08:00Z"},
		},
		"nine o'clock stays nine o'clock in autumn 2026": {
			window("0 9 * * *", "1h", amsterdam), "2026-10-24T00:00:00Z",
			[]string{"10-24T07:00Z to 10-24T08:00Z", "10-25T08:00Z to 10-25T09:00Z", "10-26T08:00Z to 10-26T09:00Z"},
		},
		"a time that is skipped in spring 2026 is the moment after it": {
			window("30 2 * * *", "1h", amsterdam), "2026-03-28T00:00:00Z",
			[]string{"03-28T01:30Z to 03-28T02:30Z", "03-29T01:00Z to 03-29T02:00Z", "03-30T00:30Z to 03-30T01:30Z"},
		},
		"a time that is skipped in spring 2027 is the moment after it": {
			window("30 2 * * *", "1h", amsterdam), "2027-03-27T00:00:00Z",
			[]string{"03-27T01:30Z to 03-27T02:30Z", "03-28T01:00Z to 03-28T02:00Z", "03-29T00:30Z to 03-29T01:30Z"},
		},
		"a time that is shown twice in autumn 2026 is the first": {
			window("30 2 * * *", "15m", amsterdam), "2026-10-24T00:00:00Z",
			[]string{"10-24T00:30Z to 10-24T00:45Z", "10-25T00:30Z to 10-25T00:45Z", "10-26T01:30Z to 10-26T01:45Z"},
		},
		"a time that is shown twice in autumn 2027 is the first": {
			window("30 2 * * *", "15m", amsterdam), "2027-10-30T00:00:00Z",
			[]string{"10-30T00:30Z to 10-30T00:45Z", "10-31T00:30Z to 10-31T00:45Z", "11-01T01:30Z to 11-01T01:45Z"},
		},
		"a window open when the clock is put back closes after its duration": {
			window("0 1 25 10 *", "3h", amsterdam), "2026-10-24T00:00:00Z", []string{"10-24T23:00Z to 10-25T02:00Z"},
		},
		"a window open when the clock is put forward closes after its duration": {
			window("0 1 29 3 *", "3h", amsterdam), "2026-03-28T00:00:00Z", []string{"03-29T00:00Z to 03-29T03:00Z"},
		},
		"a window that opens in the skipped hour opens once": {
			window("*/20 2 29 3 *", "5m", amsterdam), "2026-03-28T00:00:00Z", []string{"03-29T01:00Z to 03-29T01:05Z"},
		},
		"a window that opens in the repeated hour opens in the first": {
			window("*/30 2,3 25 10 *", "5m", amsterdam), "2026-10-24T00:00:00Z",
			[]string{"10-25T00:00Z to 10-25T00:05Z", "10-25T00:30Z to 10-25T00:35Z", "10-25T02:00Z to 10-25T02:05Z", "10-25T02:30Z to 10-25T02:35Z"},
		},
		"a clock that is put forward by half an hour": {
			window("*/15 2 4 10 *", "10m", "Australia/Lord_Howe"), "2026-10-03T00:00:00Z",
			[]string{"10-03T15:30Z to 10-03T15:40Z", "10-03T15:45Z to 10-03T15:55Z"},
		},
		"a clock that is put back by half an hour": {
			window("*/15 1 5 4 *", "10m", "Australia/Lord_Howe"), "2026-04-04T00:00:00Z",
			[]string{
				"04-04T14:00Z to 04-04T14:10Z", "04-04T14:15Z to 04-04T14:25Z",
				"04-04T14:30Z to 04-04T14:40Z", "04-04T14:45Z to 04-04T14:55Z",
			},
		},
		"a clock that is put forward by two hours": {
			window("30 1 * * *", "10m", "Antarctica/Troll"), "2026-03-28T00:00:00Z",
			[]string{"03-28T01:30Z to 03-28T01:40Z", "03-29T01:00Z to 03-29T01:10Z", "03-29T23:30Z to 03-29T23:40Z", "03-30T23:30Z to 03-30T23:40Z"},
		},
		"a midnight that is skipped": {
			window("0 0 * * *", "1h", "America/Sao_Paulo"), "2018-11-03T00:00:00Z",
			[]string{"11-03T03:00Z to 11-03T04:00Z", "11-04T03:00Z to 11-04T04:00Z", "11-05T02:00Z to 11-05T03:00Z"},
		},
		"a day that is skipped": {
			window("0 12 * * *", "1h", "Pacific/Apia"), "2011-12-29T00:00:00Z",
			[]string{"12-29T22:00Z to 12-29T23:00Z", "12-30T10:00Z to 12-30T11:00Z", "12-30T22:00Z to 12-30T23:00Z", "12-31T22:00Z to 12-31T23:00Z"},
		},
		"a day that comes twice": {
			window("0 12 * * *", "1h", "Pacific/Kwajalein"), "1969-09-29T00:00:00Z",
			[]string{"09-29T01:00Z to 09-29T02:00Z", "09-30T01:00Z to 09-30T02:00Z"},
		},
		"a day of the week": {
			window("0 9 * * SUN", "24h", ""), "2026-03-28T00:00:00Z", []string{"03-29T09:00Z to 03-30T09:00Z"},
		},
		"a day of the month or a day of the week, where both are given": {
			window("0 9 30 * SUN", "1h", ""), "2026-03-28T00:00:00Z",
			[]string{"03-29T09:00Z to 03-29T10:00Z", "03-30T09:00Z to 03-30T10:00Z"},
		},
		"shorthands": {
			window("@daily", "1h", amsterdam), "2026-03-28T00:00:00Z",
			[]string{"03-28T23:00Z to 03-29T00:00Z", "03-29T22:00Z to 03-29T23:00Z", "03-30T22:00Z to 03-30T23:00Z"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			b := plan{windows: []shipper.RolloutBlockWindow{tc.window}}.block(t)
			from := at(t, tc.from)
			if diff := cmp.Diff(tc.want, turns(t, b, from, from.Add(3*24*time.Hour))); diff != "" {
				t.Errorf("in effect (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWindowsThatCannotBeRead(t *testing.T) {
	const form = "must be minute, hour, day of month, month and day of week; the time zone has a field of its own"
	for sentence, tc := range map[string]struct {
		window shipper.RolloutBlockWindow
		want   string
	}{
		"no cron":    {window("", "1h", ""), `cron "": empty spec string`},
		"six fields": {window("0 0 0 * * *", "1h", ""), `cron "0 0 0 * * *": expected exactly 5 fields, found 6: [0 0 0 * * *]`},
		"an interval": {
			window("@every 1h", "1h", ""), `cron "@every 1h": ` + form,
		},
		"a zone in it": {
			window("TZ=UTC 0 0 * * *", "1h", ""), `cron "TZ=UTC 0 0 * * *": ` + form,
		},
		"nothing but a zone":     {window("TZ=", "1h", ""), `cron "TZ=": ` + form},
		"an eighth day":          {window("0 0 * * 8", "1h", ""), `cron "0 0 * * 8": end of range (8) above maximum (6): 8`},
		"a day that never comes": {window("0 0 30 2 *", "1h", ""), `cron "0 0 30 2 *": there is no such day`},
		"too short":              {window("0 0 * * *", "59s", ""), `duration 59s must be from 1m to 8784h`},
		"too long":               {window("0 0 * * *", "8784h1s", ""), `duration 8784h0m1s must be from 1m to 8784h`},
		"negative":               {window("0 0 * * *", "-1h", ""), `duration -1h0m0s must be from 1m to 8784h`},
		"no such zone": {
			window("0 0 * * *", "1h", "Europe/Atlantis"), `timeZone "Europe/Atlantis" is not an IANA time zone, like Europe/Amsterdam`,
		},
		"where it runs": {window("0 0 * * *", "1h", "Local"), `timeZone "Local" is not an IANA time zone, like Europe/Amsterdam`},
		"a path": {
			window("0 0 * * *", "1h", "../../etc/passwd"), `timeZone "../../etc/passwd" is not an IANA time zone, like Europe/Amsterdam`,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			for range 2 { // the second time from the cache
				if _, err := windowOf(tc.window); errorText(err) != tc.want {
					t.Errorf("got %q, want %q", errorText(err), tc.want)
				}
			}
		})
	}
}

func TestWindowsAreReadOnce(t *testing.T) {
	w := window("17 4 * * *", "1h", "Europe/Amsterdam")
	first, err := windowOf(w)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := windowOf(w); again != first {
		t.Error("it was read twice")
	}
	kept.Store(maxKept)
	if _, err := windowOf(window("18 4 * * *", "1h", "Europe/Amsterdam")); err != nil {
		t.Fatal(err)
	}
	if again, _ := windowOf(w); again == first || kept.Load() != 2 {
		t.Errorf("of more than can be kept, %d are", kept.Load())
	}
}

// The cached stretch must not answer for another time.
func TestTheTimeMayGoBack(t *testing.T) {
	b := plan{windows: []shipper.RolloutBlockWindow{window("0 18 * * *", "12h", "")}}.block(t)
	for _, tc := range []struct {
		now  string
		want bool
	}{
		{"2026-11-21T12:00:00Z", false}, {"2026-11-21T18:00:00Z", true}, {"2026-11-21T17:59:59Z", false},
		{"2026-11-23T05:59:59Z", true}, {"2026-11-22T06:00:00Z", false}, {"2026-11-22T05:59:59Z", true},
	} {
		if got := Active(b, at(t, tc.now)); got != tc.want {
			t.Errorf("at %s it is in effect: %v, want %v", tc.now, got, tc.want)
		}
	}
}

func TestUpcoming(t *testing.T) {
	named := func(name string, p plan) *shipper.RolloutBlock {
		b := p.block(t)
		b.Name = name
		return b
	}
	tomorrow := named("tomorrow", plan{start: "2026-11-22T00:00:00Z"})
	today := named("today", plan{start: "2026-11-21T20:00:00Z"})
	also := named("z-also-today", plan{start: "2026-11-21T20:00:00Z"})
	elsewhere := named("elsewhere", plan{start: "2026-11-21T13:00:00Z"})
	elsewhere.Spec.Scope = &shipper.RolloutBlockScope{Charts: []string{"other"}}
	warns, audits := named("warns", plan{start: "2026-11-21T13:00:00Z"}), named("audits", plan{start: "2026-11-21T13:00:00Z"})
	warns.Spec.Enforcement, audits.Spec.Enforcement = shipper.RolloutBlockWarn, shipper.RolloutBlockAudit
	overridden := named("overridden", plan{start: "2026-11-21T13:00:00Z"})
	for sentence, tc := range map[string]struct {
		bearing []*shipper.RolloutBlock
		want    string
	}{
		"no block":                    {nil, ""},
		"the next of several":         {[]*shipper.RolloutBlock{tomorrow, also, today}, "today 2026-11-21T20:00:00Z"},
		"none that is in effect now":  {[]*shipper.RolloutBlock{named("now", plan{}), named("nights", plan{ttl: "1h"})}, ""},
		"none that is over":           {[]*shipper.RolloutBlock{named("over", plan{expires: "2026-11-21T11:00:00Z"})}, ""},
		"none that cannot be read":    {[]*shipper.RolloutBlock{named("bad", plan{windows: []shipper.RolloutBlockWindow{{}}})}, ""},
		"none that is not in the way": {[]*shipper.RolloutBlock{elsewhere, tomorrow}, "tomorrow 2026-11-22T00:00:00Z"},
		"none that stops nothing":     {[]*shipper.RolloutBlock{warns, audits, tomorrow}, "tomorrow 2026-11-22T00:00:00Z"},
		"none that is overridden":     {[]*shipper.RolloutBlock{overridden, tomorrow}, "tomorrow 2026-11-22T00:00:00Z"},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := Change{Environments: []*shipper.ReleaseEnvironment{{Chart: shipper.Chart{Name: "nginx"}}}}
			next, when := Upcoming(tc.bearing, []Override{{Name: Name(overridden)}}, c, at(t, created))
			got := ""
			if next != nil {
				got = strings.Join([]string{next.Name, when.UTC().Format(time.RFC3339)}, " ")
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
