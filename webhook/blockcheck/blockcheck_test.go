// SPDX-License-Identifier: Apache-2.0

package blockcheck_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/blockcheck"
	"shipper.dev/shipper/webhook/response"
)

const key = shipper.RolloutBlockOverrideAnnotation

var errAway = errors.New("API server is away")

// away has no blocks and fails every read.
type away struct{}

func (away) BlocksFor(string) ([]*shipper.RolloutBlock, error) { return nil, errAway }
func (away) Block(context.Context, types.NamespacedName) (*shipper.RolloutBlock, error) {
	return nil, errAway
}
func (away) GlobalNamespace() string { return "global" }

func nn(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func TestWhatBlocksAreNotedForAuditors(t *testing.T) {
	g := ask.Know(t, ask.Grant(), ask.Block("global/dns"), ask.Block("default/demo"), ask.Block("other/x")).BlockCheck
	a := &response.Response{}
	overrides := []block.Override{{Name: nn("default", "demo")}, {Name: nn("other", "x")}}
	err := g.Judge(a, "applications", "x", response.Overrider{Namespace: "default"}, overrides, block.Change{})
	if err == nil {
		t.Error("nothing was refused")
	}
	want := map[string]string{response.AuditBlocksMet: "global/dns", response.AuditBlocksOverridden: "default/demo"}
	if diff := cmp.Diff(want, a.AuditAnnotations()); diff != "" {
		t.Errorf("audit annotations (-want +got):\n%s", diff)
	}
}

func TestNothingIsJudgedByNothing(t *testing.T) {
	g := &blockcheck.Checker{Blocks: away{}, Authz: ask.Grant(), Clock: ask.Clock()}
	if err := g.Judge(&response.Response{}, "applications", "x", response.Overrider{}, nil, block.Change{}); !errors.Is(err, errAway) {
		t.Errorf("Judge: got %v", err)
	}
	if _, errs := g.Check(t.Context(), "default", map[string]string{key: "global/dns"}, nil); len(errs) != 1 {
		t.Errorf("Check: got %v", errs)
	}
	meta := &metav1.ObjectMeta{Annotations: map[string]string{key: "global/dns"}}
	if err := g.Prune(t.Context(), &response.Response{}, meta); !errors.Is(err, errAway) || meta.Annotations[key] != "global/dns" {
		t.Errorf("Prune: got %v and %v", err, meta.Annotations)
	}
}

func TestNormalise(t *testing.T) {
	for written, want := range map[string]string{
		" b/b , a/a ": "a/a,b/b", "a/a": "a/a", "": "", ",": "", "bad": "bad",
	} {
		meta := &metav1.ObjectMeta{Annotations: map[string]string{key: written}}
		blockcheck.Normalise(meta)
		if got := meta.Annotations[key]; got != want {
			t.Errorf("%q became %q, want %q", written, got, want)
		}
	}
	none := &metav1.ObjectMeta{}
	if blockcheck.Normalise(none); none.Annotations != nil {
		t.Errorf("nothing became %v", none.Annotations)
	}
}

func TestOverridesThatAreMalformedOverrideNothing(t *testing.T) {
	if got := blockcheck.Overrides(map[string]string{key: "global/dns,bad"}); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestPermitAsksForEachBlock(t *testing.T) {
	rights := ask.Grant("dev override rolloutblocks a/a")
	g := ask.Know(t, rights, ask.Block("a/a"), ask.Block("b/b")).BlockCheck
	who := ask.Create("dev", ask.Application()).UserInfo
	permit := func(names ...types.NamespacedName) error {
		return g.Permit(t.Context(), &response.Response{}, who, "applications", &metav1.ObjectMeta{Name: "x"}, names)
	}
	err := permit(nn("a", "a"), nn("b", "b"))
	ask.CheckRefusal(t, err, response.Forbidden, `user "dev" may not override RolloutBlock b/b: the verb override on resource `+
		`rolloutblocks.shipper.booking.com named b in namespace b is needed`)
	if diff := cmp.Diff([]string{"dev override rolloutblocks a/a", "dev override rolloutblocks b/b"}, rights.Asked); diff != "" {
		t.Errorf("rights asked for (-want +got):\n%s", diff)
	}
	rights.Err = errAway
	ask.CheckRefusal(t, permit(nn("a", "a")), response.Unavailable, "API server is away")
}

func TestCheck(t *testing.T) {
	g := ask.Know(t, ask.Grant(), ask.Block("global/dns"), ask.Block("default/demo"), ask.Block("other/x")).BlockCheck
	at := "metadata.annotations[shipper.booking.com/rollout-block.override]: Invalid value: "
	for annotation, want := range map[string]string{
		"":                         "",
		"default/demo,global/dns":  "",
		"global/gone,other/before": "",
		"demo": at + `"demo": "demo" is not namespace/name of a RolloutBlock; ` +
			"list the blocks to override as namespace/name, separated by commas",
		"global/dns,global/typo": at + `"global/typo": there is no RolloutBlock global/typo: take it out of the annotation`,
		"global/dn": at + `"global/dn": there is no RolloutBlock global/dn: take it out of the annotation; ` +
			`did you mean "global/dns"?`,
		"other/y": at + `"other/y": there is no RolloutBlock other/y: take it out of the annotation`,
		"other/x": at + `"other/x": RolloutBlock other/x does not stop rollouts in namespace default: ` +
			"only blocks in that namespace and in global do; take it out of the annotation",
	} {
		before := []types.NamespacedName{nn("global", "gone"), nn("other", "before")}
		_, errs := g.Check(t.Context(), "default", map[string]string{key: annotation}, before)
		got := ""
		if len(errs) > 0 {
			got = errs[0].Error()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", annotation, diff)
		}
	}
}

const (
	stampKey  = shipper.RolloutBlockOverrideStampAnnotation
	reasonKey = shipper.RolloutBlockOverrideReasonAnnotation
)

// edited is a block changed by edits.
func edited(key string, edits ...func(*shipper.RolloutBlock)) *shipper.RolloutBlock {
	b := ask.Block(key)
	b.UID = types.UID(key + "-uid")
	for _, edit := range edits {
		edit(b)
	}
	return b
}

func policy(p shipper.RolloutBlockOverridePolicy) func(*shipper.RolloutBlock) {
	return func(b *shipper.RolloutBlock) { b.Spec.OverridePolicy = p }
}

func reasons(b *shipper.RolloutBlock) { b.Spec.RequireOverrideReason = true }

func TestReasons(t *testing.T) {
	g := ask.Know(t, ask.Grant(), edited("global/dns", reasons), edited("default/demo")).BlockCheck
	const at = "metadata.annotations[shipper.booking.com/rollout-block.override-reason]: "
	const wanted = at + "Required value: RolloutBlock global/dns wants to know why it is overridden: say it in this annotation"
	long := strings.Repeat("x", 1025)
	for sentence, tc := range map[string]struct {
		override, reason, before, want string
	}{
		"one that is asked for and given":            {"global/dns", "outage", "", ""},
		"one that is required and absent":            {"global/dns", "", "", wanted},
		"one that is required and blank":             {"global/dns", " \t", "", wanted},
		"one that is required by one of two blocks":  {"default/demo,global/dns", "", "", wanted},
		"one that is not required":                   {"default/demo", "", "", ""},
		"one of an override that was there before":   {"default/demo,global/dns", "", "global/dns", ""},
		"one that is too long":                       {"default/demo", long, "", at + "Too long: may not be more than 1024 bytes"},
		"one that is too long, and was there before": {"default/demo", long, "default/demo", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, errs := g.Check(t.Context(), "default", map[string]string{key: tc.override, reasonKey: tc.reason},
				blockcheck.Overrides(map[string]string{key: tc.before}))
			got := ""
			if len(errs) > 0 {
				got = errs[0].Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPolicies(t *testing.T) {
	const may = "dev override rolloutblocks global/dns"
	for sentence, tc := range map[string]struct {
		policy   shipper.RolloutBlockOverridePolicy
		rights   *ask.Rights
		decision response.Decision
		message  string
		asked    []string
	}{
		"an authorized user may":                      {"", ask.Grant(may), "", "", []string{may}},
		"an authorized user may, with the policy set": {shipper.RolloutBlockAuthorized, ask.Grant(may), "", "", []string{may}},
		"an unauthorized user may not": {
			"", ask.Grant(), response.Forbidden, `user "dev" may not override RolloutBlock global/dns: the verb override on resource ` +
				`rolloutblocks.shipper.booking.com named dns in namespace global is needed`, []string{may},
		},
		"with policy Anyone no right is needed": {shipper.RolloutBlockAnyone, ask.Grant(), "", "", nil},
		"with policy Nobody no right is enough": {
			shipper.RolloutBlockNobody, ask.Grant(may), response.Forbidden,
			"RolloutBlock global/dns may not be overridden (its overridePolicy is Nobody)", nil,
		},
		"the API server does not answer": {"", &ask.Rights{Err: errAway}, response.Unavailable, "API server is away", []string{may}},
	} {
		t.Run(sentence, func(t *testing.T) {
			g := ask.Know(t, tc.rights, edited("global/dns", policy(tc.policy))).BlockCheck
			a, meta := &response.Response{}, &metav1.ObjectMeta{Name: "x", Annotations: map[string]string{reasonKey: "outage"}}
			who := ask.Create("dev", ask.Application()).UserInfo
			err := g.Permit(t.Context(), a, who, "applications", meta, []types.NamespacedName{nn("global", "dns")})
			ask.CheckRefusal(t, err, tc.decision, tc.message)
			if diff := cmp.Diff(tc.asked, tc.rights.Asked); diff != "" {
				t.Errorf("rights asked for (-want +got):\n%s", diff)
			}
			var audit map[string]string
			if tc.decision == "" {
				audit = map[string]string{response.AuditOverride: "global/dns", response.AuditOverrideReason: "outage"}
			}
			if diff := cmp.Diff(audit, a.AuditAnnotations()); diff != "" {
				t.Errorf("audit annotations (-want +got):\n%s", diff)
			}
		})
	}
	g := &blockcheck.Checker{Blocks: away{}, Authz: ask.Grant(), Clock: ask.Clock()}
	err := g.Permit(t.Context(), &response.Response{}, ask.Create("dev", ask.Application()).UserInfo, "applications",
		&metav1.ObjectMeta{Name: "x"}, []types.NamespacedName{nn("global", "dns")})
	ask.CheckRefusal(t, err, response.Unavailable, "API server is away")
}

func TestEnforcements(t *testing.T) {
	enforce := func(e shipper.RolloutBlockEnforcement) func(*shipper.RolloutBlock) {
		return func(b *shipper.RolloutBlock) { b.Spec.Enforcement = e }
	}
	const story = " (DNS issues, troubleshooting in progress; jdoe, 12m ago)"
	const annotate = "kubectl annotate app x shipper.booking.com/rollout-block.override="
	for sentence, tc := range map[string]struct {
		blocks  []client.Object
		message string
		warned  []string
		audit   map[string]string
	}{
		"one that denies": {
			[]client.Object{edited("global/dns", enforce("Deny"))},
			"rollouts blocked by: global/dns" + story + ". To override: " + annotate + "global/dns -n default " +
				"(the verb override on these rolloutblocks is needed)",
			nil, map[string]string{response.AuditBlocksMet: "global/dns"},
		},
		"one that warns": {
			[]client.Object{edited("global/dns", enforce("Warn"))}, "",
			[]string{"rollouts are asked to wait by: global/dns" + story}, map[string]string{response.AuditBlocksWarned: "global/dns"},
		},
		"one that notes": {
			[]client.Object{edited("global/dns", enforce("Audit"))}, "", nil, map[string]string{response.AuditBlocksAudited: "global/dns"},
		},
		"all of them": {
			[]client.Object{edited("global/a", enforce("Audit")), edited("global/b", enforce("Warn")), edited("global/c")},
			"rollouts blocked by: global/c" + story + ". To override: " + annotate + "global/c -n default " +
				"(the verb override on these rolloutblocks is needed)",
			[]string{"rollouts are asked to wait by: global/b" + story},
			map[string]string{response.AuditBlocksAudited: "global/a", response.AuditBlocksWarned: "global/b", response.AuditBlocksMet: "global/c"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			g, a := ask.Know(t, ask.Grant(), tc.blocks...).BlockCheck, &response.Response{}
			decision := response.Decision("")
			if tc.message != "" {
				decision = response.Blocked
			}
			overrider := response.Overrider{Short: "app", Namespace: "default", Name: "x"}
			ask.CheckRefusal(t, g.Judge(a, "applications", "x", overrider, nil, block.Change{}), decision, tc.message)
			if diff := cmp.Diff(tc.warned, a.Warnings()); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.audit, a.AuditAnnotations()); diff != "" {
				t.Errorf("audit annotations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStamp(t *testing.T) {
	record := func(name, uid, user, reason string) block.Record {
		return block.Record{Block: name, UID: types.UID(uid), User: user, Time: metav1.Time{Time: ask.Now}, Reason: reason}
	}
	notes := func(override, reason string, records ...block.Record) map[string]string {
		out := map[string]string{key: override}
		if reason != "" {
			out[reasonKey] = reason
		}
		if len(records) > 0 {
			out[stampKey] = block.FormatRecords(records)
		}
		return out
	}
	dns := record("global/dns", "global/dns-uid", "ann", "outage")
	demo := record("default/demo", "default/demo-uid", "ann", "outage")
	earlier := record("global/dns", "an earlier one", "bob", "another outage")
	forged := record("global/dns", "global/dns-uid", "boss", "because")
	for sentence, tc := range map[string]struct {
		old, now, want map[string]string
	}{
		"nothing is overridden":       {nil, nil, nil},
		"a creation with an override": {nil, notes("global/dns", "outage"), notes("global/dns", "outage", dns)},
		"an added override":           {notes("", ""), notes("global/dns", "outage"), notes("global/dns", "outage", dns)},
		"another added override keeps the records": {
			notes("global/dns", "", earlier), notes("default/demo,global/dns", "outage"), notes("default/demo,global/dns", "outage", demo, earlier),
		},
		"a removed override removes its record": {
			notes("default/demo,global/dns", "outage", demo, dns), notes("global/dns", "outage", demo, dns), notes("global/dns", "outage", dns),
		},
		"all overrides removed": {notes("global/dns", "outage", dns), notes("", "outage", dns), notes("", "outage")},
		"an update that leaves the records out": {
			notes("global/dns", "", dns), notes("global/dns", ""), notes("global/dns", "", dns),
		},
		"a later change of the reason": {notes("global/dns", "outage", dns), notes("global/dns", "fun", dns),
			notes("global/dns", "fun", dns)},
		"an override without a record stays so": {notes("global/dns", ""), notes("global/dns", ""), notes("global/dns", "")},
		"forged with a new override":            {nil, notes("global/dns", "outage", forged), notes("global/dns", "outage", dns)},
		"forged without an override": {nil, map[string]string{stampKey: block.FormatRecords([]block.Record{forged})},
			map[string]string{}},
		"forged beside an old override": {
			notes("global/dns", "outage", dns), notes("global/dns", "outage", forged), notes("global/dns", "outage", dns),
		},
		"forged beside one of which nothing was noted": {
			notes("global/dns", ""), notes("global/dns", "", forged), notes("global/dns", ""),
		},
		"forged beside one that is malformed": {notes("dns", ""), notes("dns", "", forged), notes("dns", "")},
		"left out beside one that is malformed": {
			notes("dns", "", dns), notes("dns", ""), notes("dns", "", dns),
		},
		"forged while it was malformed, which then is mended": {
			notes("dns", "outage", forged), notes("global/dns", "outage", forged), notes("global/dns", "outage", dns),
		},
		"an unknown block gets no record": {nil, notes("global/gone", "outage"), notes("global/gone", "outage")},
		"no JSON": {
			nil, map[string]string{key: "global/dns", reasonKey: "outage", stampKey: "{"}, notes("global/dns", "outage", dns),
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			g := ask.Know(t, ask.Grant(), edited("global/dns"), edited("default/demo")).BlockCheck
			meta := &metav1.ObjectMeta{Annotations: maps.Clone(tc.now)}
			var old *metav1.ObjectMeta
			if tc.old != nil {
				old = &metav1.ObjectMeta{Annotations: tc.old}
			}
			if err := g.Stamp(t.Context(), "ann", meta, old); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, meta.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
	g := &blockcheck.Checker{Blocks: away{}, Clock: ask.Clock()}
	err := g.Stamp(t.Context(), "ann", &metav1.ObjectMeta{Annotations: notes("global/dns", "")}, nil)
	if !errors.Is(err, errAway) {
		t.Errorf("the block is unknown: %v", err)
	}
}

// counting has no blocks and counts the reads.
type counting struct {
	away
	asked *int
}

func (c counting) Block(context.Context, types.NamespacedName) (*shipper.RolloutBlock, error) {
	*c.asked++
	return nil, nil
}

// Otherwise an author of an Application could make the webhook send ten thousand requests to the API server.
func TestALongListOfUnknownBlocksIsNotLookedUpWhole(t *testing.T) {
	names := make([]string, 10_000)
	for i := range names {
		names[i] = fmt.Sprintf("global/no-%d", i)
	}
	asked := 0
	g := &blockcheck.Checker{Blocks: counting{asked: &asked}, Clock: ask.Clock()}
	meta := &metav1.ObjectMeta{Annotations: map[string]string{key: strings.Join(names, ",")}}
	if err := g.Stamp(t.Context(), "ann", meta, nil); err != nil {
		t.Fatal(err)
	}
	if _, errs := g.Check(t.Context(), "default", meta.Annotations, nil); len(errs) != 1 {
		t.Errorf("got %v", errs)
	}
	if asked != 2 {
		t.Errorf("%d blocks were looked up", asked)
	}
}

// A block that was deleted and created again is another block: an override of the first is not one of the second.
func TestAnOverrideDoesNotOutliveItsBlock(t *testing.T) {
	w := ask.Know(t, ask.Grant(), edited("global/dns"))
	meta := &metav1.ObjectMeta{Namespace: "default", Name: "x", Annotations: map[string]string{key: "global/dns", reasonKey: "outage"}}
	if err := w.BlockCheck.Stamp(t.Context(), "ann", meta, nil); err != nil {
		t.Fatal(err)
	}
	judge := func() error {
		overrider, overrides := response.OverriderOf("app", meta), block.Overrides(meta.Annotations)
		return w.BlockCheck.Judge(&response.Response{}, "applications", "x", overrider, overrides, block.Change{})
	}
	if err := judge(); err != nil {
		t.Fatalf("an overridden block stops the change: %v", err)
	}
	recreated := edited("global/dns", func(b *shipper.RolloutBlock) { b.UID = "another" })
	if err := w.Indexers.Blocks.Update(recreated); err != nil {
		t.Fatal(err)
	}
	ask.CheckRefusal(t, judge(), response.Blocked,
		"rollouts blocked by: global/dns (DNS issues, troubleshooting in progress; jdoe, 12m ago). "+
			"To override: kubectl annotate app x shipper.booking.com/rollout-block.override=global/dns -n default --overwrite "+
			"(the verb override on these rolloutblocks is needed)")
	was := &metav1.ObjectMeta{Annotations: maps.Clone(meta.Annotations)}
	if err := w.BlockCheck.Stamp(t.Context(), "bob", meta, was); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(was.Annotations, meta.Annotations); diff != "" {
		t.Errorf("who writes it again as it is makes it an override of the other (-want +got):\n%s", diff)
	}
	a := &response.Response{}
	if err := w.BlockCheck.Prune(t.Context(), a, meta); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{}, meta.Annotations); diff != "" {
		t.Errorf("what is left of it (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"RolloutBlock global/dns is gone and was taken out of the override annotation"}, a.Warnings()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestAReasonGivenLaterIsRecordedOnce(t *testing.T) {
	g := ask.Know(t, ask.Grant(), ask.Block("global/dns")).BlockCheck
	recorded := func(old *metav1.ObjectMeta, reason string) (*metav1.ObjectMeta, string) {
		t.Helper()
		meta := &metav1.ObjectMeta{Namespace: "default", Name: "x", Annotations: map[string]string{key: "global/dns"}}
		if reason != "" {
			meta.Annotations[reasonKey] = reason
		}
		if err := g.Stamp(t.Context(), "ann", meta, old); err != nil {
			t.Fatal(err)
		}
		records := block.Records(meta.Annotations)
		if len(records) != 1 {
			t.Fatalf("the override has %d records", len(records))
		}
		return meta, records[0].Reason
	}
	meta, _ := recorded(nil, "")
	for _, step := range []struct{ given, want string }{{"outage", "outage"}, {"another", "outage"}, {"", "outage"}} {
		var reason string
		if meta, reason = recorded(meta, step.given); reason != step.want {
			t.Errorf("after %q was given, the record has %q, want %q", step.given, reason, step.want)
		}
	}
}

func TestPrune(t *testing.T) {
	g := ask.Know(t, ask.Grant(), ask.Block("global/dns")).BlockCheck
	for written, want := range map[string]map[string]string{
		"global/dns":             {key: "global/dns"},
		"global/dns,global/gone": {key: "global/dns"},
		"global/gone":            {},
	} {
		a, meta := &response.Response{}, &metav1.ObjectMeta{Annotations: map[string]string{key: written}}
		if err := g.Prune(t.Context(), a, meta); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, meta.Annotations); diff != "" {
			t.Errorf("%q (-want +got):\n%s", written, diff)
		}
		if warned := len(a.Warnings()) == 1; warned != (meta.Annotations[key] != written) {
			t.Errorf("%q: warned %q", written, a.Warnings())
		}
	}
}

func TestSameOverride(t *testing.T) {
	a, b := map[string]string{key: "a/b", "x": "y"}, map[string]string{key: "a/b"}
	if !blockcheck.SameOverride(a, b) || blockcheck.SameOverride(a, nil) || !blockcheck.SameOverride(nil, nil) {
		t.Error("overrides are compared by more or less than their annotation")
	}
}
