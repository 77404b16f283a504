// SPDX-License-Identifier: Apache-2.0

package renewal

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/credential"
)

// outcome is all that is decided of a credential at a time.
type outcome struct {
	Due   bool
	Again time.Duration
	Told  fleet.Credentials
}

func TestPlan(t *testing.T) {
	born := time.Unix(1_800_000_000, 0).UTC() // 2027-01-15T08:00:00Z
	const (
		day, end = 24 * time.Hour, 1_800_000_000 + 86400
		join     = "; `shipperctl clusters join` makes another"
	)
	renewed := credential.Credential{Kind: credential.Token, NotBefore: born, NotAfter: born.Add(day), Life: day}
	plain := renewed
	plain.Life = 0
	certificate := plain
	certificate.Kind = credential.Certificate
	stuck := plain
	stuck.Problem = "it is bound to nothing"
	ended := fleet.Credentials{
		NotAfter: end, Reason: "CredentialsEnded",
		Message: `the token in Secret "s/c" ended at 2027-01-16T08:00:00Z; ` + "`shipperctl clusters join` makes another",
	}
	for name, tc := range map[string]struct {
		c      credential.Credential
		at     time.Duration // after its birth
		failed error
		last   time.Duration // after its birth; 0: never
		want   outcome
	}{
		"a new token":           {renewed, 0, nil, 0, outcome{Again: 6 * time.Hour, Told: fleet.Credentials{NotAfter: end}}},
		"just before it is due": {renewed, 6*time.Hour - time.Second, nil, 0, outcome{Again: pause, Told: fleet.Credentials{NotAfter: end}}},
		"due":                   {renewed, 6 * time.Hour, nil, 0, outcome{Due: true, Again: day / 4, Told: fleet.Credentials{NotAfter: end}}},
		"renewed a moment ago, by a clock that is ahead": {
			renewed, 6 * time.Hour, nil, 6*time.Hour - time.Second, outcome{Again: day/4 - time.Second, Told: fleet.Credentials{NotAfter: end}},
		},
		"renewed a moment ago, by a clock that is more than its life ahead": {
			renewed, 30 * time.Hour, nil, 30*time.Hour - time.Second, outcome{Again: day/4 - time.Second, Told: ended},
		},
		"a quarter of its life later, by that clock": {renewed, 36 * time.Hour, nil, 30 * time.Hour, outcome{Due: true, Told: ended}},
		"Shipper starts with a clock that is more than its life behind": {
			renewed, -30 * time.Hour, nil, 0, outcome{Due: true, Again: 36 * time.Hour, Told: fleet.Credentials{NotAfter: end}},
		},
		"renewed a moment ago, by that clock": {
			renewed, -30 * time.Hour, nil, -30*time.Hour - time.Second, outcome{Again: day/4 - time.Second, Told: fleet.Credentials{NotAfter: end}},
		},
		"a quarter of its life after that, by that clock": {
			renewed, -24 * time.Hour, nil, -30 * time.Hour, outcome{Due: true, Again: 30 * time.Hour, Told: fleet.Credentials{NotAfter: end}},
		},
		"a new token, by a clock that is a minute behind": {
			renewed, -time.Minute, nil, 0, outcome{Again: day/4 + time.Minute, Told: fleet.Credentials{NotAfter: end}},
		},
		"the cluster refuses": {renewed, 7 * time.Hour, errors.New("no"), 0, outcome{Due: true, Again: 5 * time.Hour, Told: fleet.Credentials{
			NotAfter: end, Reason: "RenewalFailed", Message: `the token in Secret "s/c" ends at 2027-01-16T08:00:00Z and could not be renewed: ` +
				"no; it is tried again, and `shipperctl clusters join` makes another",
		}}},
		"the cluster answers megabytes": {
			renewed, 7 * time.Hour, errors.New(strings.Repeat("x", 8<<20)), 0,
			outcome{Due: true, Again: 5 * time.Hour, Told: fleet.Credentials{NotAfter: end, Reason: "RenewalFailed",
				Message: `the token in Secret "s/c" ends at 2027-01-16T08:00:00Z and could not be renewed: ` + strings.Repeat("x", 1021) +
					"…; it is tried again, and `shipperctl clusters join` makes another",
			}},
		},
		"the cluster was away for half of its life": {renewed, day / 2, nil, 0, outcome{Due: true, Again: day / 2, Told: fleet.Credentials{
			NotAfter: end, Reason: "RenewalFailed", Message: `the token in Secret "s/c" ends at 2027-01-16T08:00:00Z and could not be renewed: ` +
				"the cluster cannot be worked with; when it can before that, it will be renewed",
		}}},
		"it has ended":            {renewed, day, errors.New("no"), 0, outcome{Due: true, Told: ended}},
		"a token without renewal": {plain, 6 * time.Hour, nil, 0, outcome{Again: 10 * time.Hour, Told: fleet.Credentials{NotAfter: end}}},
		"a token without renewal ends soon": {plain, 16 * time.Hour, nil, 0, outcome{Again: 8 * time.Hour, Told: fleet.Credentials{
			NotAfter: end, Reason: "CredentialsEndSoon",
			Message: `the token in Secret "s/c" ends at 2027-01-16T08:00:00Z, and Shipper does not renew it` + join,
		}}},
		"a client certificate has ended": {certificate, day, nil, 0, outcome{Told: fleet.Credentials{
			NotAfter: end, Reason: "CredentialsEnded",
			Message: `the client certificate in Secret "s/c" ended at 2027-01-16T08:00:00Z; put another into the Secret, or delete the Secret ` +
				"and let `shipperctl clusters join` make a token",
		}}},
		"what cannot be renewed": {stuck, 0, nil, 0, outcome{Again: 16 * time.Hour, Told: fleet.Credentials{
			NotAfter: end, Reason: "RenewalFailed",
			Message: `Secret "s/c" cannot be renewed: it is bound to nothing; ` + "`shipperctl clusters join` makes another",
		}}},
		"a token that does not end": {credential.Credential{Kind: credential.Token}, 0, nil, 0, outcome{}},
		"an empty Secret":           {credential.Credential{}, 0, nil, 0, outcome{}},
	} {
		t.Run(name, func(t *testing.T) {
			var last time.Time
			if tc.last != 0 {
				last = born.Add(tc.last)
			}
			now := born.Add(tc.at)
			got := outcome{due(tc.c, last, now), again(tc.c, last, now), reported(tc.c, "s/c", tc.failed, now)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
