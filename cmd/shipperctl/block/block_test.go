// SPDX-License-Identifier: Apache-2.0

package block

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

var now = time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC)

func TestSpec(t *testing.T) {
	at := func(text string) *metav1.Time {
		parsed, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return &metav1.Time{Time: parsed}
	}
	for sentence, tc := range map[string]struct {
		flags []string
		want  any
	}{
		"a message is all it takes": {[]string{"-m", "why"}, shipper.RolloutBlockSpec{Message: "why"}},
		"no message":                {nil, "--message is needed: refusals show it"},
		"once": {
			[]string{"-m", "why", "--start", "2026-12-18T17:00:00Z", "--end", "2027-01-04T07:00:00Z"},
			shipper.RolloutBlockSpec{Message: "why", Schedule: &shipper.RolloutBlockSchedule{
				Start: at("2026-12-18T17:00:00Z"), End: at("2027-01-04T07:00:00Z"),
			}},
		},
		"every weekend": {
			[]string{"-m", "why", "--cron", "0 18 * * FRI", "--duration", "62h", "--time-zone", "Europe/Amsterdam", "--allow", "Abort,Retreat"},
			shipper.RolloutBlockSpec{
				Message: "why", Allow: []shipper.RolloutBlockChange{"Abort", "Retreat"},
				Schedule: &shipper.RolloutBlockSchedule{Windows: []shipper.RolloutBlockWindow{{
					Cron: "0 18 * * FRI", Duration: metav1.Duration{Duration: 62 * time.Hour}, TimeZone: "Europe/Amsterdam",
				}}},
			},
		},
		"for some": {
			[]string{"-m", "why", "--regions", "eu,us", "--charts", "nginx", "-l", "tier=gold", "--ttl", "2h", "--enforcement", "Warn"},
			shipper.RolloutBlockSpec{
				Message: "why", TTL: &metav1.Duration{Duration: 2 * time.Hour}, Enforcement: "Warn",
				Scope: &shipper.RolloutBlockScope{
					Regions: []string{"eu", "us"}, Charts: []string{"nginx"},
					Applications: &metav1.LabelSelector{
						MatchLabels: map[string]string{"tier": "gold"}, MatchExpressions: []metav1.LabelSelectorRequirement{},
					},
				},
			},
		},
		"a time that is none": {
			[]string{"-m", "why", "--start", "tomorrow"},
			`--start "tomorrow" is not a time like 2026-12-18T17:00:00Z or 2026-12-18T18:00:00+01:00`,
		},
		"a cron without a duration": {
			[]string{"-m", "why", "--cron", "@daily"}, "--cron, --duration and --time-zone: duration 0s must be from 1m to 8784h",
		},
		"a duration without a cron": {
			[]string{"-m", "why", "--duration", "2h"},
			"--duration and --time-zone are those of --cron, which is not there; for how long from now on there is --ttl",
		},
		"a selector that is none": {
			[]string{"-m", "why", "-l", "tier in"},
			`--selector "tier in": couldn't parse the selector string "tier in": unable to parse requirement: found '' expected: '('`,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			w, flags := &wanted{}, pflag.NewFlagSet("create", pflag.ContinueOnError)
			w.register(flags)
			if err := flags.Parse(tc.flags); err != nil {
				t.Fatal(err)
			}
			var got any
			got, err := w.spec()
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTable(t *testing.T) {
	time.Local = time.UTC
	later := metav1.NewTime(now.Add(4 * time.Hour))
	past := metav1.NewTime(now.Add(-time.Hour))
	named := func(namespace, name string, spec shipper.RolloutBlockSpec) shipper.RolloutBlock {
		spec.Message, spec.Author.Name = "why", "ann"
		return shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: past}, Spec: spec}
	}
	blocks := []shipper.RolloutBlock{
		named("a", "to-come", shipper.RolloutBlockSpec{Schedule: &shipper.RolloutBlockSchedule{Start: &later}}),
		named("a", "past", shipper.RolloutBlockSpec{ExpiresAt: &past}),
		named("z", "now", shipper.RolloutBlockSpec{Scope: &shipper.RolloutBlockScope{Regions: []string{"eu", "us"}, Charts: []string{"nginx"}}}),
		named("z", "broken", shipper.RolloutBlockSpec{Schedule: &shipper.RolloutBlockSchedule{
			Windows: []shipper.RolloutBlockWindow{{Cron: "often", Duration: metav1.Duration{Duration: time.Hour}}},
		}}),
		named("z", "two-hours", shipper.RolloutBlockSpec{
			TTL: &metav1.Duration{Duration: 2 * time.Hour}, Enforcement: shipper.RolloutBlockWarn, Allow: []shipper.RolloutBlockChange{"Abort"},
		}),
	}
	const want = `BLOCK         HOLDS                                       STOPS                                BY    WHY
z/broken      all the time: its schedule cannot be read   everything                           ann   why
z/now         until it is lifted                          eu,us & nginx                        ann   why
z/two-hours   until Fri 20 Nov 14:00 UTC, in 60m          only warns of everything but Abort   ann   why
a/past        no more                                     everything                           ann   why
a/to-come     from Fri 20 Nov 17:00 UTC, in 4h            everything                           ann   why
`
	if diff := cmp.Diff(want, table(listed(blocks, now), 0, now)); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	if got := table(nil, 0, now); got != "there are no blocks\n" {
		t.Errorf("without blocks: %q", got)
	}
}

func TestSplit(t *testing.T) {
	for arg, want := range map[string]string{"x": "ns/x", "other/x": "other/x"} {
		if namespace, name := split(arg, "ns"); namespace+"/"+name != want {
			t.Errorf("%s is %s/%s, want %s", arg, namespace, name, want)
		}
	}
}
