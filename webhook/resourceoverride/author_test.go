// SPDX-License-Identifier: Apache-2.0

package resourceoverride_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/override"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/resourceoverride"
	"shipper.dev/shipper/webhook/response"
)

const stamps = " stamp resourceoverrides shop/labels"

// labelled is a ResourceOverride with a label, which means nothing to Shipper.
func labelled() *shipper.ResourceOverride {
	return changed(labels("shop"), func(o *shipper.ResourceOverride) { o.Labels = map[string]string{"a": "b"} })
}

// after records users who have written it before the author did, one in a line.
func after(earlier string, o *shipper.ResourceOverride) *shipper.ResourceOverride {
	metav1.SetMetaDataAnnotation(&o.ObjectMeta, shipper.OverrideEarlierWritersAnnotation, earlier)
	return o
}

func TestTheAuthorOfTheSpecIsRecorded(t *testing.T) {
	ann := writtenBy("ann", labels("shop"))
	for sentence, tc := range map[string]struct {
		req     *admission.Request
		granted []string
		want    string
		refused response.Decision
	}{
		"who creates it":               {ask.Create("ann", labels("shop")), nil, "ann", ""},
		"whatever the manifest says":   {ask.Create("ann", writtenBy("bob", labels("shop"))), nil, "ann", ""},
		"unless a backup is restored":  {ask.Create("ann", writtenBy("bob", labels("shop"))), []string{"ann" + stamps}, "bob", ""},
		"who changes the spec":         {ask.Update("bob", writtenBy("ann", labels("shop", "web")), ann), nil, "bob, ann", ""},
		"and claims that another does": {ask.Update("bob", writtenBy("eve", labels("shop", "web")), ann), nil, "bob, ann", ""},
		"once, whoever writes between": {
			ask.Update("ann", labels("shop"), after("ann\neve", writtenBy("bob", labels("shop", "web")))), nil, "ann, eve, bob", "",
		},
		"and who wrote before, whatever the manifest says": {
			ask.Update("bob", after("", writtenBy("bob", labels("shop", "web"))), after("eve", ann.DeepCopy())), nil, "bob, eve, ann", "",
		},
		"not those who wrote one that is gone": {ask.Create("ann", after("eve", labels("shop"))), nil, "ann", ""},
		"those of a label keep all":            {ask.Update("bob", labelled(), after("eve\ndan", ann.DeepCopy())), nil, "ann, eve, dan", ""},
		"not who labels it":                    {ask.Update("bob", labelled(), ann), nil, "ann", ""},
		"nor who changes the record alone":     {ask.Update("ann", writtenBy("eve", labels("shop")), ann), nil, "", response.Invalid},
		"but for a user who may, after a recovery": {
			ask.Update("ann", writtenBy("eve", labels("shop")), ann), []string{"ann" + stamps}, "eve", "",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			hook := &resourceoverride.Webhook{Authz: ask.Grant(tc.granted...), GlobalNamespace: "global"}
			a := &response.Response{}
			err := hook.Default(t.Context(), tc.req, a)
			got, refused := "", response.Decision("")
			if refusal, ok := errors.AsType[*response.Refusal](err); ok {
				refused = refusal.Decision
			} else if err != nil {
				t.Fatal(err)
			} else {
				o := ask.Patched[shipper.ResourceOverride](t, tc.req, a)
				got = strings.Join(append([]string{o.Annotations[shipper.OverrideRequestedByAnnotation]}, override.EarlierWriters(o)...), ", ")
			}
			if diff := cmp.Diff([]string{tc.want, string(tc.refused)}, []string{got, string(refused)}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestNoWriteForgesTheAuthor has the attacks of a user whose write the mutating webhook did not see.
func TestNoWriteForgesTheAuthor(t *testing.T) {
	const key = `ResourceOverride.shipper.booking.com "labels" is invalid: metadata.annotations[shipper.booking.com/override.requested-by]: `
	const name = key + `Forbidden: must name the author of this write, who does not count as an approver then: leave it out, or set it ` +
		`to "ann"`
	const length = key + `Forbidden: each Release copies the author's name, in at most 1024 characters: write it as a user with a shorter ` +
		`name, such as a ServiceAccount`
	const writers = `ResourceOverride.shipper.booking.com "labels" is invalid: metadata.annotations[shipper.booking.com/` +
		`override.earlier-writers]: `
	const earlier = writers + `Forbidden: must name the users who have written the ResourceOverride before, and do not count as approvers, ` +
		`either: leave it out, or set it to `
	many := "0"
	for i := 1; i < override.MaxWriters; i++ {
		many += fmt.Sprint("\n", i)
	}
	bob, long := writtenBy("bob", labels("shop")), writtenBy(strings.Repeat("ä", 1025), labels("shop"))
	for sentence, tc := range map[string]struct {
		req     *admission.Request
		granted string
		want    string
	}{
		"in the name of another":        {ask.Create("ann", writtenBy("eve", labels("shop"))), "", name},
		"in no name":                    {ask.Create("ann", labels("shop")), "", name},
		"with the name of the last one": {ask.Update("ann", writtenBy("bob", labels("shop", "web")), bob), "", name},
		"of the record alone": {
			ask.Update("ann", writtenBy("eve", labels("shop")), bob), "", key + `Forbidden: is written by Shipper; leave it out, or at "bob"`,
		},
		"that removes the record": {
			ask.Update("ann", labels("shop"), bob), "", key + `Required value: is written by Shipper; leave it at "bob"`,
		},
		"without those who wrote before": {
			ask.Update("ann", writtenBy("ann", labels("shop", "web")), after("eve", bob.DeepCopy())), "", earlier + `"eve\nbob"`,
		},
		"with some of them": {
			ask.Update("ann", after("eve", writtenBy("ann", labels("shop", "web"))), after("eve", bob.DeepCopy())), "", earlier + `"eve\nbob"`,
		},
		"with others": {ask.Create("ann", after("eve", writtenBy("ann", labels("shop")))), "", earlier + `""`},
		"of those who wrote before alone": {
			ask.Update("ann", after("dan", bob.DeepCopy()), after("eve", bob.DeepCopy())), "",
			writers + `Forbidden: is written by Shipper; leave it out, or at "eve"`,
		},
		"with those who wrote before": {
			ask.Update("ann", after("eve\nbob", writtenBy("ann", labels("shop", "web"))), after("eve", bob.DeepCopy())), "", "",
		},
		"with a name of two lines": {ask.Create("a\nb", writtenBy("a\nb", labels("shop"))), "", key + "Forbidden: the author's name has a " +
			"line break: write it as another user, such as a ServiceAccount"},
		"as one more than a Release may name": {
			ask.Update("ann", after(many+"\nbob", writtenBy("ann", labels("shop", "web"))), after(many, bob.DeepCopy())), "", key +
				"Forbidden: 21 other users have written it, and each Release copies at most 20 names with 4096 characters: create it anew " +
				"(kubectl replace --force), and you are its only author",
		},
		"in a name that no Release may have": {ask.Create("ann", long), "ann" + stamps, length},
		"as long as it may be":               {ask.Create("ann", writtenBy(strings.Repeat("ä", 1024), labels("shop"))), "ann" + stamps, ""},
		"though one that is there does not keep it from being labelled": {
			ask.Update("ann", writtenBy(strings.Repeat("ä", 1025), labelled()), long), "", "",
		},
		"but with the right": {ask.Create("ann", writtenBy("eve", labels("shop"))), "ann" + stamps, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			hook := &resourceoverride.Webhook{
				Authz: ask.Grant(append(editor("ann"), tc.granted)...), GlobalNamespace: "global", State: known{}, Charts: &judging{},
			}
			decision := response.Decision("")
			if tc.want != "" {
				decision = response.Invalid
			}
			ask.CheckRefusal(t, hook.Validate(t.Context(), tc.req, &response.Response{}), decision, tc.want)
		})
	}
}
