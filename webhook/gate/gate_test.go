// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/answer"
	"shipper.dev/shipper/webhook/gate"
)

const key = shipper.RolloutBlockOverrideAnnotation

var errAway = errors.New("API server is away")

// away knows no blocks and cannot ask for any.
type away struct{}

func (away) Bearing(string) ([]*shipper.RolloutBlock, error) { return nil, errAway }
func (away) Block(context.Context, types.NamespacedName) (*shipper.RolloutBlock, error) {
	return nil, errAway
}
func (away) GlobalNamespace() string { return "global" }

func nn(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func TestWhatBlocksAreNotedForAuditors(t *testing.T) {
	g := ask.Know(t, ask.Grant(), ask.Block("global/dns"), ask.Block("default/demo"), ask.Block("other/x")).Gate
	a := &answer.Answer{}
	overrides := []block.Override{{Name: nn("default", "demo")}, {Name: nn("other", "x")}}
	err := g.Judge(a, "applications", "x", answer.Subject{Namespace: "default"}, overrides, block.Change{})
	if err == nil {
		t.Error("nothing was refused")
	}
	want := map[string]string{answer.AuditBlocksMet: "global/dns", answer.AuditBlocksOverridden: "default/demo"}
	if diff := cmp.Diff(want, a.AuditAnnotations()); diff != "" {
		t.Errorf("audit annotations (-want +got):\n%s", diff)
	}
}

func TestNothingIsJudgedByNothing(t *testing.T) {
	g := &gate.Gate{Blocks: away{}, Rights: ask.Grant(), Clock: ask.Clock()}
	if err := g.Judge(&answer.Answer{}, "applications", "x", answer.Subject{}, nil, block.Change{}); !errors.Is(err, errAway) {
		t.Errorf("Judge: got %v", err)
	}
	if _, errs := g.Check(t.Context(), "default", map[string]string{key: "global/dns"}, nil); len(errs) != 1 {
		t.Errorf("Check: got %v", errs)
	}
	meta := &metav1.ObjectMeta{Annotations: map[string]string{key: "global/dns"}}
	if err := g.Prune(t.Context(), &answer.Answer{}, meta); !errors.Is(err, errAway) || meta.Annotations[key] != "global/dns" {
		t.Errorf("Prune: got %v and %v", err, meta.Annotations)
	}
}

func TestNormalise(t *testing.T) {
	for written, want := range map[string]string{
		" b/b , a/a ": "a/a,b/b", "a/a": "a/a", "": "", ",": "", "bad": "bad",
	} {
		meta := &metav1.ObjectMeta{Annotations: map[string]string{key: written}}
		gate.Normalise(&answer.Answer{}, meta)
		if got := meta.Annotations[key]; got != want {
			t.Errorf("%q became %q, want %q", written, got, want)
		}
	}
	none := &metav1.ObjectMeta{}
	if gate.Normalise(&answer.Answer{}, none); none.Annotations != nil {
		t.Errorf("nothing became %v", none.Annotations)
	}
}

func TestOverridesThatAreMalformedOverrideNothing(t *testing.T) {
	if got := gate.Overrides(map[string]string{key: "global/dns,bad"}); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestPermitAsksForEachBlock(t *testing.T) {
	rights := ask.Grant("dev override rolloutblocks a/a")
	g := ask.Know(t, rights, ask.Block("a/a"), ask.Block("b/b")).Gate
	who := ask.Create("dev", ask.Application()).UserInfo
	permit := func(names ...types.NamespacedName) error {
		return g.Permit(t.Context(), &answer.Answer{}, who, "applications", &metav1.ObjectMeta{Name: "x"}, names)
	}
	err := permit(nn("a", "a"), nn("b", "b"))
	ask.CheckRefusal(t, err, answer.Forbidden, `user "dev" may not override RolloutBlock b/b: the verb override on resource `+
		`rolloutblocks.shipper.booking.com named b in namespace b is needed`)
	if diff := cmp.Diff([]string{"dev override rolloutblocks a/a", "dev override rolloutblocks b/b"}, rights.Asked); diff != "" {
		t.Errorf("rights asked for (-want +got):\n%s", diff)
	}
	rights.Err = errAway
	ask.CheckRefusal(t, permit(nn("a", "a")), answer.Unavailable, "API server is away")
}

func TestCheck(t *testing.T) {
	g := ask.Know(t, ask.Grant(), ask.Block("global/dns"), ask.Block("default/demo"), ask.Block("other/x")).Gate
	at := "metadata.annotations[shipper.booking.com/rollout-block.override]: Invalid value: "
	for annotation, want := range map[string]string{
		"":                         "",
		"default/demo,global/dns":  "",
		"global/gone,other/before": "",
		"demo": at + `"demo": "demo" is not namespace/name of a RolloutBlock; ` +
			"list the blocks to override as namespace/name, separated by commas",
		"global/dns,global/typo": at + `"global/typo": there is no RolloutBlock global/typo: take it out of the annotation`,
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

func TestPrune(t *testing.T) {
	g := ask.Know(t, ask.Grant(), ask.Block("global/dns")).Gate
	for written, want := range map[string]map[string]string{
		"global/dns":             {key: "global/dns"},
		"global/dns,global/gone": {key: "global/dns"},
		"global/gone":            {},
	} {
		a, meta := &answer.Answer{}, &metav1.ObjectMeta{Annotations: map[string]string{key: written}}
		if err := g.Prune(t.Context(), a, meta); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, meta.Annotations); diff != "" {
			t.Errorf("%q (-want +got):\n%s", written, diff)
		}
		if told := len(a.Warnings()) == 1; told != (meta.Annotations[key] != written) {
			t.Errorf("%q: warned %q", written, a.Warnings())
		}
	}
}

func TestSameOverride(t *testing.T) {
	a, b := map[string]string{key: "a/b", "x": "y"}, map[string]string{key: "a/b"}
	if !gate.SameOverride(a, b) || gate.SameOverride(a, nil) || !gate.SameOverride(nil, nil) {
		t.Error("overrides are compared by more or less than their annotation")
	}
}
