// SPDX-License-Identifier: Apache-2.0

package reviewpath

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Keys of the Secret of the certificate.
const (
	// TokenKey has the token that the webhook configurations get.
	TokenKey = "review-path"
	// sinceKey has the time when it was made.
	sinceKey = "review-path-since"
	// beforeKey has other tokens that are answered, one a line with the time until which they are.
	beforeKey = "review-paths-before"
)

// none stands for the path without a token, in beforeKey.
const none = "-"

const (
	// overlap is how long a path is answered after the configurations had to have another one: until all API servers have seen
	// it. Their watches usually deliver it within milliseconds.
	overlap = 2 * time.Minute
	// patience is how long configurations may have paths without a token, as those of an older version: its replicas, which answer at no
	// other, may be on their way in or out.
	patience = 10 * time.Minute
	// pause is the least time between two writes of the configurations by one replica, in case another writer resets them.
	pause = time.Minute
)

// record is what the Secret has.
type record struct {
	token string
	since time.Time
	// before has the other tokens that are answered, with the end of that; the empty one is the path without a token.
	before map[string]time.Time
}

// read parses the Secret's data. Malformed entries count as missing.
func read(data map[string][]byte) record {
	r := record{before: map[string]time.Time{}}
	if token := string(data[TokenKey]); isToken(token) {
		r.token = token
	}
	r.since, _ = time.Parse(time.RFC3339, string(data[sinceKey]))
	for line := range strings.Lines(string(data[beforeKey])) {
		token, end, _ := strings.Cut(strings.TrimSpace(line), " ")
		until, err := time.Parse(time.RFC3339, end)
		if err != nil || token != none && !isToken(token) {
			continue
		}
		if token == none {
			token = ""
		}
		r.before[token] = until
	}
	return r
}

// writeTo returns data with the record in it.
func (r record) writeTo(data map[string][]byte) map[string][]byte {
	out := maps.Clone(data)
	if out == nil {
		out = map[string][]byte{}
	}
	out[TokenKey] = []byte(r.token)
	out[sinceKey] = []byte(r.since.UTC().Format(time.RFC3339))
	var lines strings.Builder
	for _, token := range slices.Sorted(maps.Keys(r.before)) {
		name := token
		if name == "" {
			name = none
		}
		fmt.Fprintf(&lines, "%s %s\n", name, r.before[token].UTC().Format(time.RFC3339))
	}
	out[beforeKey] = []byte(lines.String())
	return out
}

// observed is the input of a decision.
type observed struct {
	record
	// named are the tokens in the webhook configurations.
	named []string
	// lacks reports whether a webhook has no path: API servers do not find it.
	lacks bool
}

// act is a write, or rest.
type act string

const (
	rest     act = "rest"
	renew    act = "renew"
	announce act = "announce"
	publish  act = "publish"
)

// step is a decision. again is when to decide again, if act is rest.
type step struct {
	act   act
	why   string
	again time.Time
}

// memory is what a replica has seen and done before.
type memory struct {
	// published is when it last wrote the configurations, plain since when they have a path without a token; zero if they do not.
	published, plain time.Time
}

// next decides on the next write.
func next(o observed, lifetime time.Duration, m memory, now time.Time) step {
	others := slices.DeleteFunc(slices.Clone(o.named), func(token string) bool { return token == o.token })
	old := o.since.Add(lifetime)
	switch {
	case o.token == "":
		return step{act: renew, why: "there is no path yet"}
	case !now.Before(old):
		return step{act: renew, why: "the path is old"}
	case len(others) == 0 && !o.lacks:
		return step{act: rest, again: old}
	case !o.lacks && !m.plain.IsZero() && now.Before(m.plain.Add(patience)):
		return step{act: rest, again: m.plain.Add(patience)}
	case !o.lacks && now.Before(m.published.Add(pause)):
		return step{act: rest, again: m.published.Add(pause)}
	case slices.ContainsFunc(others, func(token string) bool { return o.before[token].Before(now.Add(overlap / 2)) }):
		return step{act: announce, why: "a webhook configuration names another path"}
	}
	return step{act: publish, why: "a webhook configuration names another path, or none"}
}

// after is the record that an act writes.
func (o observed) after(a act, now time.Time) record {
	out := record{token: o.token, since: o.since, before: map[string]time.Time{}}
	for token, until := range o.before {
		if until.After(now) {
			out.before[token] = until
		}
	}
	if a == renew {
		out.token, out.since = NewToken(), now.Truncate(time.Second)
		if o.token != "" {
			out.before[o.token] = end(now)
		}
	}
	for _, token := range o.named {
		if token != out.token {
			out.before[token] = end(now)
		}
	}
	return out
}

// end is the end of what is answered for another overlap, in whole seconds as it is stored.
func end(now time.Time) time.Time { return now.Add(overlap).Truncate(time.Second) }
