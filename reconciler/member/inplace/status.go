// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"slices"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// shared reports whether Pods of one StatefulSet are the contender's and older Releases'.
func (p *pass) shared() bool {
	return p.kind.Kind == statefulSet && p.choice.contender >= 0 && len(p.choice.older) > 0 && !p.byUser
}

// split is how many available Pods are of the object's template, and how many are of others. Pods that are not available are taken for
// those of the template first: they are being replaced. share is how many are to have it.
func (l live) split(share int32) (updated, rest int32) {
	updated = l.updated
	switch {
	case l.one && !l.observed: // the status is about the template before
		updated = 0
	case l.one && l.updated == l.total: // both templates are the same
		updated = min(l.total, share)
	}
	missing := l.missing()
	rest = max(0, l.replicas-updated-l.leaving)
	return max(0, updated-missing), max(0, rest-max(0, missing-updated))
}

// counts are the available Pods of the contender of a shared StatefulSet, and of older Releases.
func (p *pass) counts() (contender, older int32) {
	switch name := p.sides[p.choice.contender].name; {
	case p.choice.holder >= 0 && p.is.owner == p.sides[p.choice.holder].name:
		updated, rest := p.is.split(p.choice.goal.Share())
		if p.choice.inverted {
			return rest, updated
		}
		return updated, rest
	case p.is.owner == name:
		return p.is.available, 0
	default:
		return 0, p.is.available
	}
}

// share is what the i-th side has.
func (p *pass) share(i int) Share {
	s := p.sides[i]
	out := Share{Kind: p.kind.Kind, Name: p.key.Name, Full: s.item.Replicas}
	if !p.is.there {
		if i == p.choice.holder {
			return out.lacks("it is not there yet")
		}
		return out
	}
	if p.kind.Kind != daemonSet {
		out.Have = p.have(i)
	}
	return p.judge(out, i)
}

// have is how many available Pods the i-th side has.
func (p *pass) have(i int) int32 {
	s := p.sides[i]
	if p.shared() && p.choice.holder >= 0 {
		switch contender, older := p.counts(); {
		case i == p.choice.contender:
			return contender
		case slices.Contains(p.choice.older, i):
			return min(s.asked(), older)
		}
		return 0
	}
	all := p.kind.Kind != statefulSet || p.byUser || p.is.partition > 0 && i == p.choice.holder // below its chart's partition
	updated, rest := p.is.split(p.is.replicas)
	switch {
	case p.is.owner == s.name && all:
		return p.is.available
	case p.is.owner == s.name:
		return updated
	case p.kind.Kind == statefulSet && (i == p.choice.holder || p.choice.holder < 0 && i == p.afterOwner()):
		return rest
	}
	return 0
}

// afterOwner is the next older side than the owner that may have Pods of a StatefulSet that is left as it was found.
func (p *pass) afterOwner() int {
	owner := p.side(p.is.owner)
	for i := owner + 1; i < len(p.sides); i++ {
		if want := p.sides[i].want; want.AsFound || want.Percent > 0 {
			return i
		}
	}
	return -1
}

// judge says what the i-th side lacks.
func (p *pass) judge(out Share, i int) Share {
	s, is, g := p.sides[i], p.is, p.choice.goal
	held := i == p.choice.holder
	switch {
	case s.want.AsFound:
		return out
	case held && p.wrote:
		return out.lacks("it is being changed for this release")
	case held && is.owner != s.name:
		return out.lacks("it has not been changed for this release yet")
	case held && !is.observed:
		return out.lacks("the cluster has not seen its change yet")
	case p.shared() && p.choice.holder >= 0:
		return p.judgeShare(out, i)
	case !held:
		return out
	case is.stuck != "":
		out.Reason, out.Message = shipper.DeploymentStuck, is.stuck
		return out
	case p.kind.Kind == daemonSet:
		g.Replicas = is.replicas
	}
	wanted := g.Replicas - is.partition
	if p.byUser { // who deletes Pods decides which template they have
		wanted = 0
	}
	if is.updated < wanted || is.available != g.Replicas || is.total != g.Replicas {
		return out.lacks(fmt.Sprintf("%d of %d pods are of this release, and %d are available", is.updated, g.Replicas, is.available))
	}
	return out
}

// judgeShare is judge for a StatefulSet that several Releases have.
func (p *pass) judgeShare(out Share, i int) Share {
	is, g := p.is, p.choice.goal
	contender, older := p.counts()
	wanted := g.Share()
	if p.choice.inverted {
		wanted = g.Incumbents
	}
	switch {
	case i == p.choice.contender:
		moved := !p.wrote && is.observed && is.owner == p.sides[p.choice.holder].name
		same := is.one && is.updated == is.total
		if !moved || contender != wanted || is.missing()+is.leaving > 0 || is.total != g.Replicas || !same && is.updated != g.Share() {
			return out.lacks(fmt.Sprintf("%d of %d pods are of this release and available, %d are to be", contender, g.Replicas, wanted))
		}
	case slices.Contains(p.choice.older, i):
		if need := min(p.sides[i].asked(), g.Replicas-wanted); older < need {
			return out.lacks(fmt.Sprintf("%d of %d pods are of this release and available, %d are to be", older, g.Replicas, need))
		}
	}
	return out
}

// lacks makes a Share that is not ready.
func (s Share) lacks(message string) Share {
	s.Reason, s.Message = shipper.InProgress, message
	return s
}
