// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const day = 24 * time.Hour

var serviceNames = []string{"shipper-webhook.shipper-system.svc"}

// state is the start of the tests in this file: a current authority that was created at birth and lives for 300 days, and a
// certificate of it that lives for 30, both trusted.
func state(t *testing.T, edits ...func(*observed)) observed {
	t.Helper()
	a := anAuthority(t, birth, 300*day)
	pair := aCertificate(t, a, birth.Add(30*day), serviceNames...)
	o := observed{contents: contents{current: a, serving: pair}, memory: pair.Leaf}
	o.bundles = [][]*x509.Certificate{{a.certificate}, {a.certificate}}
	for _, edit := range edits {
		edit(&o)
	}
	return o
}

var testPolicy = policy{Lifetimes{Authority: 300 * day, Certificate: 30 * day}, serviceNames}

// succeeded is a state in which another authority will sign next.
func succeeded(t *testing.T, now time.Time, edits ...func(*observed)) observed {
	t.Helper()
	return state(t, append([]func(*observed){func(o *observed) { o.next = anAuthority(t, now, 300*day) }}, edits...)...)
}

// Edits of a state.
func nextIsTrusted(since time.Time) func(*observed) {
	return func(o *observed) {
		for i := range o.bundles {
			o.bundles[i] = append(o.bundles[i], o.next.certificate)
		}
		o.trustedSince = since
	}
}

func TestNext(t *testing.T) {
	other := anAuthority(t, birth, 300*day)
	for sentence, tc := range map[string]struct {
		o    observed
		now  time.Time
		want step
	}{
		"with nothing there, an authority is made": {
			observed{}, birth, step{act: prepare, why: "there is no authority"},
		},
		"a valid certificate is kept until a third of its life is left": {
			state(t), birth, step{act: rest, again: birth.Add(20 * day)},
		},
		"without a webhook configuration nothing is due": {
			state(t, func(o *observed) { o.bundles = nil }), birth, step{act: rest, again: birth.Add(20 * day)},
		},
		"a certificate is renewed when a third is left": {
			state(t), birth.Add(20 * day), step{act: renew, why: "the certificate ends soon"},
		},
		"one that has ended is renewed at once": {
			state(t), birth.Add(30 * day), step{act: renew, why: "the certificate has ended"},
		},
		"one that is lost is replaced": {
			state(t, func(o *observed) { o.serving = nil }), birth, step{act: renew, why: "there is no certificate"},
		},
		"one of another authority is replaced": {
			state(t, func(o *observed) { o.serving = aCertificate(t, other, birth.Add(30*day), serviceNames...) }), birth,
			step{act: renew, why: "the certificate is not of the current authority"},
		},
		"one that lacks a name is replaced": {
			state(t, func(o *observed) { o.serving = aCertificate(t, o.current, birth.Add(30*day), "elsewhere") }), birth,
			step{act: renew, why: "the certificate is not for all names"},
		},
		"one that ends with its authority cannot be renewed": {
			succeeded(t, birth, func(o *observed) {
				o.serving = aCertificate(t, o.current, o.current.certificate.NotAfter, serviceNames...)
			}), birth.Add(299 * day), step{act: publish, why: "a webhook configuration lacks an authority"},
		},
		"a bundle that was emptied is filled": {
			state(t, func(o *observed) { o.bundles[1] = nil }), birth,
			step{act: publish, why: "a webhook configuration lacks an authority"},
		},
		"another authority is made when a third is left": {
			state(t, func(o *observed) { o.serving = aCertificate(t, o.current, birth.Add(230*day), serviceNames...) }),
			birth.Add(200 * day), step{act: prepare, why: "the authority ends soon"},
		},
		"an authority without its key is succeeded": {
			state(t, func(o *observed) { o.current.key = nil }), birth, step{act: prepare, why: "the authority has no key"},
		},
		"when all has ended, another authority is made": {
			state(t), birth.Add(400 * day), step{act: prepare, why: "the authority has ended"},
		},
		"a successor that has ended is replaced": {
			succeeded(t, birth), birth.Add(400 * day), step{act: prepare, why: "the authority has ended"},
		},
		"the successor is trusted first": {
			succeeded(t, birth), birth, step{act: publish, why: "a webhook configuration lacks an authority"},
		},
		"then it settles": {
			succeeded(t, birth, nextIsTrusted(birth)), birth.Add(time.Minute - 1), step{act: rest, again: birth.Add(time.Minute)},
		},
		"since this process has seen it": {
			succeeded(t, birth, nextIsTrusted(time.Time{})), birth.Add(day), step{act: rest, again: birth.Add(day + time.Minute)},
		},
		"then it signs": {
			succeeded(t, birth, nextIsTrusted(birth)), birth.Add(time.Minute),
			step{act: promote, why: "the next authority is trusted"},
		},
		"at once when the serving certificate has ended": {
			succeeded(t, birth.Add(400*day), nextIsTrusted(time.Time{})), birth.Add(400 * day),
			step{act: promote, why: "no certificate is served that is trusted"},
		},
		"at once when nothing is served": {
			succeeded(t, birth, nextIsTrusted(time.Time{}), func(o *observed) { o.current, o.serving, o.memory = nil, nil, nil }),
			birth, step{act: promote, why: "no certificate is served that is trusted"},
		},
		"not at once when this process still serves a certificate lost from the secret": {
			succeeded(t, birth, nextIsTrusted(birth), func(o *observed) { o.current, o.serving = nil, nil }),
			birth, step{act: rest, again: birth.Add(time.Minute)},
		},
		"an authority stays while a certificate of it is good": {
			state(t, outgoing(t, other, birth.Add(10*day)), trusts(other)), birth, step{act: rest, again: birth.Add(10 * day)},
		},
		"and is published while it is needed": {
			state(t, outgoing(t, other, birth.Add(10*day))), birth,
			step{act: publish, why: "a webhook configuration lacks an authority"},
		},
		"and goes when that has ended": {
			state(t, outgoing(t, other, birth.Add(10*day)), trusts(other)), birth.Add(10 * day),
			step{act: forget, why: "all that an authority has signed has ended"},
		},
		"first from the secret, then from the configurations": {
			state(t, trusts(other)), birth, step{act: withdraw, why: "a webhook configuration trusts an authority that signs nothing"},
		},
		"a clock years behind changes nothing": {
			state(t), birth.Add(-20 * 365 * day), step{act: rest, again: birth.Add(20 * day)},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, next(tc.o, testPolicy, tc.now), cmp.AllowUnexported(step{})); diff != "" {
				t.Errorf("step (-want +got):\n%s", diff)
			}
		})
	}
}

// outgoing makes an authority a previous one, with a certificate that ends at end.
func outgoing(t *testing.T, a *authority, end time.Time) func(*observed) {
	t.Helper()
	leaf := aCertificate(t, a, end, serviceNames...).Leaf
	return func(o *observed) {
		o.previous, o.outgoing = []*x509.Certificate{a.certificate}, []*x509.Certificate{leaf}
	}
}

func trusts(a *authority) func(*observed) {
	return func(o *observed) {
		for i := range o.bundles {
			o.bundles[i] = append(o.bundles[i], a.certificate)
		}
	}
}

// afterwards is a state after a write.
func afterwards(t *testing.T, o observed, todo act, now time.Time) observed {
	t.Helper()
	if todo == publish || todo == withdraw {
		bundles := make([][]*x509.Certificate, len(o.bundles))
		for i, bundle := range o.bundles {
			bundles[i] = o.wanted(bundle, todo, now)
		}
		o.bundles = bundles
		return o
	}
	data := map[string][]byte{}
	if o.current != nil {
		e := edit{}
		if o.current.key != nil {
			if err := e.setAuthority(caKey, caKeyKey, o.current); err != nil {
				t.Fatal(err)
			}
		}
		e[caKey] = encode(o.current.certificate)
		data = e.applyTo(data)
	}
	e := edit{previousKey: encode(o.previous...), outgoingKey: encode(o.outgoing...)}
	if o.next != nil {
		if err := e.setAuthority(nextKey, nextKeyKey, o.next); err != nil {
			t.Fatal(err)
		}
	}
	if o.serving != nil {
		if err := e.setServing(o.serving); err != nil {
			t.Fatal(err)
		}
	}
	change, err := editOf(todo, o, testPolicy, now)
	if err != nil {
		t.Fatal(err)
	}
	o.contents = read(change.applyTo(e.applyTo(data)))
	return o
}

// A process may end after any write. The next one knows only the stored state.
func TestARotationGoesOnAfterAnyWrite(t *testing.T) {
	for sentence, tc := range map[string]struct {
		start observed
		at    time.Time
		want  []act
	}{
		"at minute zero": {
			observed{bundles: make([][]*x509.Certificate, 2)}, birth, []act{prepare, publish, promote, rest},
		},
		"after an upgrade from a key and a certificate that others have made": {
			state(t), birth.Add(20 * day), []act{renew, rest},
		},
		"when the authority ends soon": {
			state(t, func(o *observed) { o.serving = aCertificate(t, o.current, birth.Add(230*day), serviceNames...) }),
			birth.Add(200 * day), []act{prepare, publish, rest, promote, rest, renew, rest, forget, withdraw, rest},
		},
		"when the pod was off for a year": {
			state(t), birth.Add(365 * day), []act{prepare, publish, promote, rest},
		},
		"when the pod was off until the certificate had ended": {
			state(t), birth.Add(31 * day), []act{renew, rest},
		},
		"when the pod was off for a year in the middle of a rotation": {
			succeeded(t, birth.Add(200*day), nextIsTrusted(time.Time{})), birth.Add(565 * day),
			[]act{prepare, publish, promote, rest},
		},
		"when the key of the authority was taken away": {
			state(t, func(o *observed) { o.current.key = nil }), birth,
			[]act{prepare, publish, rest, promote, rest, renew, rest, forget, withdraw, rest},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			o, now := tc.start, tc.at
			var got []act
			for range tc.want {
				o.memory = o.leaf() // of the new process
				todo := next(o, testPolicy, now)
				got = append(got, todo.act)
				if todo.act == rest {
					if o.next != nil {
						o.trustedSince = now
					}
					now = todo.again
					continue
				}
				o = afterwards(t, o, todo.act, now)
				o.trustedSince = time.Time{}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

// A replica whose clock is ahead creates certificates that API servers accept, too.
func TestAClockThatIsAheadDoesNoHarm(t *testing.T) {
	for sentence, ahead := range map[string]time.Duration{
		"an hour": time.Hour, "a year": 365 * day, "eleven years": 11 * 365 * day,
	} {
		t.Run(sentence, func(t *testing.T) {
			o := state(t)
			now := birth.Add(ahead)
			for range 10 {
				todo := next(o, testPolicy, now)
				if todo.act == rest {
					break
				}
				o = afterwards(t, o, todo.act, now)
				o.memory = o.leaf()
			}
			roots := x509.NewCertPool()
			for _, c := range o.bundles[0] {
				roots.AddCert(c)
			}
			verify := x509.VerifyOptions{Roots: roots, CurrentTime: birth, DNSName: serviceNames[0]}
			if _, err := o.leaf().Verify(verify); err != nil {
				t.Errorf("by a clock that is right: %v", err)
			}
			verify.CurrentTime = now
			if _, err := o.leaf().Verify(verify); err != nil {
				t.Errorf("by the clock that is ahead: %v", err)
			}
		})
	}
}

// Replicas of two versions want different names during a rollout. Neither removes the other's names.
func TestReplicasThatWantDifferentNamesAgree(t *testing.T) {
	old, young := testPolicy, testPolicy
	old.names, young.names = []string{"a", "b"}, []string{"a", "c"}
	o := state(t)
	renewed := func(p policy) *tls.Certificate {
		t.Helper()
		todo := next(o, p, birth)
		if todo.act != renew {
			t.Fatalf("step %v", todo)
		}
		e, err := editOf(renew, o, p, birth)
		if err != nil {
			t.Fatal(err)
		}
		return read(e).serving
	}
	o.serving = renewed(old)
	o.serving = renewed(young)
	if diff := cmp.Diff([]string{"a", "c", "b", serviceNames[0]}, o.leaf().DNSNames); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	for _, p := range []policy{old, young} {
		if todo := next(o, p, birth); todo.act != rest {
			t.Errorf("who wants %v goes on: %v", p.names, todo)
		}
	}
}

func TestLifetimes(t *testing.T) {
	for sentence, tc := range map[string]struct {
		l        Lifetimes
		settling time.Duration
		want     string
	}{
		"the defaults": {settling: time.Minute},
		"an hour":      {l: Lifetimes{Certificate: time.Hour}, settling: time.Minute},
		"short ones":   {l: Lifetimes{Authority: 30 * time.Second, Certificate: 10 * time.Second}, settling: time.Second / 2},
		"an authority that ends too soon": {
			l: Lifetimes{Authority: 2 * time.Hour, Certificate: time.Hour}, settling: time.Minute,
			want: "the authority must live for three times as long as a certificate (1h0m0s) at least, not 2h0m0s",
		},
		"a certificate that ends too soon": {
			l: Lifetimes{Certificate: time.Second}, settling: time.Second / 20, want: "a certificate must live for 5s at least, not 1s",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := ""
			if err := tc.l.Validate(); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if s := tc.l.orDefaults().settling(); s != tc.settling {
				t.Errorf("settles in %s, want %s", s, tc.settling)
			}
		})
	}
}
