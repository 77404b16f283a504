// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/x509"
	"fmt"
	"slices"
	"time"
)

// Lifetimes are those of created certificates. Each is replaced when a third of its lifetime is left.
type Lifetimes struct {
	// Authority is the lifetime of the CA, ten years if it is zero. At least three times Certificate.
	Authority time.Duration
	// Certificate is the lifetime of the serving certificate, ninety days if it is zero.
	Certificate time.Duration
}

// The default lifetimes.
const (
	DefaultAuthorityLifetime   = 10 * 365 * 24 * time.Hour
	DefaultCertificateLifetime = 90 * 24 * time.Hour
)

// shortest is the shortest lifetime of a certificate: the times in it are whole seconds.
const shortest = 5 * time.Second

// Validate returns an error if l cannot work.
func (l Lifetimes) Validate() error {
	l = l.orDefaults()
	switch {
	case l.Certificate < shortest:
		return fmt.Errorf("a certificate must live for %s at least, not %s", shortest, l.Certificate)
	case l.Authority < 3*l.Certificate:
		return fmt.Errorf("the authority must live for three times as long as a certificate (%s) at least, not %s",
			l.Certificate, l.Authority)
	}
	return nil
}

func (l Lifetimes) orDefaults() Lifetimes {
	if l.Authority == 0 {
		l.Authority = DefaultAuthorityLifetime
	}
	if l.Certificate == 0 {
		l.Certificate = DefaultCertificateLifetime
	}
	return l
}

// settling is how long an authority must have been in the webhook configurations before it is used, so that every API server
// has seen them. Their watches usually deliver them within milliseconds.
func (l Lifetimes) settling() time.Duration { return min(time.Minute, l.Certificate/20) }

// policy is the configuration of a replica. Replicas may differ during an upgrade.
type policy struct {
	Lifetimes
	// names are the names that the certificate must have.
	names []string
}

// observed is the input of a decision.
type observed struct {
	contents
	// bundles are the CA bundles of all webhooks in the existing webhook configurations.
	bundles [][]*x509.Certificate
	// memory is the certificate that this process serves with; nil for none. It outlives the Secret.
	memory *x509.Certificate
	// trustedSince is when this process first saw the next authority in all bundles, where it has stayed since. Zero if it is
	// not in all.
	trustedSince time.Time
}

// act is a write.
type act string

// The writes, the most urgent first.
const (
	rest     act = "rest"     // nothing
	renew    act = "renew"    // the current authority signs another certificate
	prepare  act = "prepare"  // the next authority is made
	publish  act = "publish"  // the webhook configurations get missing authorities
	promote  act = "promote"  // the next authority becomes the current one and signs the certificate
	forget   act = "forget"   // authorities are removed whose certificates have all ended
	withdraw act = "withdraw" // authorities that are not in the Secret leave the webhook configurations
)

// step is the decision.
type step struct {
	act act
	why string
	// again is when to decide again, if act is rest.
	again time.Time
}

// next decides on the next write, so that every API server always accepts every certificate that any replica may serve with: an
// authority is first trusted, then used, and trusted until everything that it has signed has ended. The decision needs no
// memory of earlier writes.
func next(o observed, p policy, now time.Time) step {
	switch {
	case o.current.signs(now) && p.renewal(o, now) != "":
		return step{act: renew, why: p.renewal(o, now)}
	case !o.next.signs(now) && p.succession(o, now) != "":
		return step{act: prepare, why: p.succession(o, now)}
	case !o.trustedBy(o.trusted(now)):
		return step{act: publish, why: "a webhook configuration lacks an authority"}
	case o.next.signs(now) && !o.atStake(now):
		return step{act: promote, why: "no certificate is served that is trusted"}
	case o.next.signs(now) && o.trustedSince.IsZero():
		return step{act: rest, again: now.Add(p.settling())}
	case o.next.signs(now) && now.Before(o.trustedSince.Add(p.settling())):
		return step{act: rest, again: o.trustedSince.Add(p.settling())}
	case o.next.signs(now):
		return step{act: promote, why: "the next authority is trusted"}
	case len(o.needed(now)) < len(o.previous):
		return step{act: forget, why: "all that an authority has signed has ended"}
	case o.strangers(now):
		return step{act: withdraw, why: "a webhook configuration trusts an authority that signs nothing"}
	}
	return step{act: rest, again: p.again(o, now)}
}

// renewal is the reason to replace the certificate, empty if there is none. The current authority must be able to sign.
func (p policy) renewal(o observed, now time.Time) string {
	leaf := o.leaf()
	switch {
	case leaf == nil:
		return "there is no certificate"
	case !signed(leaf, o.current.certificate):
		return "the certificate is not of the current authority"
	case !covers(leaf, p.names):
		return "the certificate is not for all names"
	case !live(leaf, now):
		return "the certificate has ended"
	case !now.Before(p.renewAt(leaf)) && p.end(o.current, now).After(leaf.NotAfter):
		return "the certificate ends soon"
	}
	return ""
}

// succession is the reason to create another authority, empty if there is none.
func (p policy) succession(o observed, now time.Time) string {
	switch {
	case o.current == nil:
		return "there is no authority"
	case o.current.key == nil:
		return "the authority has no key"
	case !live(o.current.certificate, now):
		return "the authority has ended"
	case !now.Before(p.succeedAt(o.current)):
		return "the authority ends soon"
	}
	return ""
}

func (p policy) renewAt(leaf *x509.Certificate) time.Time {
	return leaf.NotAfter.Add(-p.Certificate / 3)
}

func (p policy) succeedAt(a *authority) time.Time {
	return a.certificate.NotAfter.Add(-p.Authority / 3)
}

// end is the end of a certificate that a signs now. None outlives its authority.
func (p policy) end(a *authority, now time.Time) time.Time {
	end := now.Add(p.Certificate).Truncate(time.Second)
	if a.certificate.NotAfter.Before(end) {
		return a.certificate.NotAfter
	}
	return end
}

// again is the next time at which a write will be due. Both authority and certificate are valid.
func (p policy) again(o observed, now time.Time) time.Time {
	times := []time.Time{p.succeedAt(o.current)}
	if renewAt := p.renewAt(o.leaf()); renewAt.After(now) {
		times = append(times, renewAt)
	}
	for _, c := range o.outgoing {
		if live(c, now) {
			times = append(times, c.NotAfter)
		}
	}
	return slices.MinFunc(times, time.Time.Compare)
}

// trusted are the authorities that the API server must accept.
func (o observed) trusted(now time.Time) []*x509.Certificate {
	var all []*x509.Certificate
	for _, a := range []*authority{o.current, o.next} {
		if a != nil && live(a.certificate, now) {
			all = append(all, a.certificate)
		}
	}
	for _, c := range o.needed(now) {
		if !contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

// needed are the previous authorities that have signed a certificate which has not ended.
func (o observed) needed(now time.Time) []*x509.Certificate {
	return signers(o.previous, o.outgoing, now)
}

// signers are those of authorities that have signed one of leaves that has not ended.
func signers(authorities, leaves []*x509.Certificate, now time.Time) []*x509.Certificate {
	var found []*x509.Certificate
	for _, a := range authorities {
		if live(a, now) && !contains(found, a) &&
			slices.ContainsFunc(leaves, func(c *x509.Certificate) bool { return live(c, now) && signed(c, a) }) {
			found = append(found, a)
		}
	}
	return found
}

// trustedBy reports whether all bundles contain all of authorities.
func (o observed) trustedBy(authorities []*x509.Certificate) bool {
	for _, bundle := range o.bundles {
		for _, a := range authorities {
			if !contains(bundle, a) {
				return false
			}
		}
	}
	return true
}

// strangers reports whether any bundle has an authority that must not be trusted.
func (o observed) strangers(now time.Time) bool {
	trusted := o.trusted(now)
	return slices.ContainsFunc(o.bundles, func(bundle []*x509.Certificate) bool {
		return slices.ContainsFunc(bundle, func(c *x509.Certificate) bool { return !contains(trusted, c) })
	})
}

// atStake reports whether the API server accepts a certificate that this process, or according to the Secret another replica,
// serves with.
func (o observed) atStake(now time.Time) bool {
	return o.accepted(o.memory, now) || o.accepted(o.leaf(), now)
}

// accepted reports whether some webhook's bundle accepts leaf.
func (o observed) accepted(leaf *x509.Certificate, now time.Time) bool {
	return live(leaf, now) && slices.ContainsFunc(o.bundles, func(bundle []*x509.Certificate) bool {
		return len(signers(bundle, []*x509.Certificate{leaf}, now)) > 0
	})
}

// serves reports whether all webhook configurations accept leaf.
func (o observed) serves(leaf *x509.Certificate, now time.Time) bool {
	return live(leaf, now) && !slices.ContainsFunc(o.bundles, func(bundle []*x509.Certificate) bool {
		return len(signers(bundle, []*x509.Certificate{leaf}, now)) == 0
	})
}
