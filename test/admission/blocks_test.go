// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/test/env"
)

// block creates a RolloutBlock and returns when the webhook enforces it.
func block(t *testing.T, namespace string) *shipper.RolloutBlock {
	t.Helper()
	b := &shipper.RolloutBlock{Spec: ask.Block("x/y").Spec}
	b.Namespace, b.GenerateName = namespace, "dns-outage-"
	if err := admin.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unblock(t, b) })
	env.Eventually(t, "the webhook to know the block", func(ctx context.Context) error { return probe(ctx, b, true) })
	return b
}

// unblock deletes a RolloutBlock and returns when the webhook no longer enforces it.
func unblock(t *testing.T, b *shipper.RolloutBlock) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), env.Patience)
	defer cancel()
	if err := admin.Delete(ctx, b); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err := env.Until(ctx, "the webhook to forget the block", func(ctx context.Context) error { return probe(ctx, b, false) }); err != nil {
		t.Error(err)
	}
}

// probe fails unless the webhook refuses a new Application in b's namespace, or admits it if blocks is false.
func probe(ctx context.Context, b *shipper.RolloutBlock, blocks bool) error {
	app := ask.Application(func(a *shipper.Application) {
		a.Namespace, a.Name, a.UID = b.Namespace, "probe", ""
		a.Spec.Template.Chart.RepoURL = "http://127.0.0.1:1"
	})
	err := admin.Create(ctx, app, client.DryRunAll)
	if known := err != nil && strings.Contains(err.Error(), b.Namespace+"/"+b.Name); known != blocks {
		return errors.New("the webhook's cache is behind")
	}
	return nil
}

func TestBlocksHaveAuthors(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	for name, want := range map[string]shipper.RolloutBlockAuthor{
		"ann": {
			Type: "user", Name: "ann"}, "system:serviceaccount:ci:deployer": {Type: "serviceaccount", Name: "ci/deployer"},
	} {
		b := &shipper.RolloutBlock{Spec: shipper.RolloutBlockSpec{Message: "wait"}}
		b.Namespace, b.GenerateName = ns, "by-"
		create(t, as(t, name), b)
		if diff := cmp.Diff(want, b.Spec.Author); diff != "" {
			t.Errorf("author of %s's block (-want +got):\n%s", name, diff)
		}
	}
	err := as(t, "ann").Create(t.Context(), &shipper.RolloutBlock{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "silent"}, Spec: shipper.RolloutBlockSpec{Message: "  "},
	})
	checkRefused(t, err, refused{422, "spec.message: Required value"})
}

func TestAGlobalBlockSaysWhatItDoes(t *testing.T) {
	t.Parallel()
	ann := as(t, "ann")
	b := ask.Block(shipper.GlobalBlocksNamespace + "/loud")
	b.CreationTimestamp = metav1.Time{}
	if err := ann.Create(t.Context(), b, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"this stops rollouts in every namespace, at once"}, ann.warnings()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// The webhook admits the garbage collector's deletion of an object whose owner is gone: only Shipper sets the owner.
func TestOwnersDoNotLeadAroundABlock(t *testing.T) {
	t.Parallel()
	r, dev := rollOut(t, namespace(t)), as(t, "dev")
	const why = "metadata.ownerReferences: Forbidden: the reference to "
	forged := r.rel.DeepCopy()
	forged.OwnerReferences[0].UID = "forged"
	checkRefused(t, dev.Update(t.Context(), forged.DeepCopy()), refused{422, why + "Application"})
	b := block(t, r.rel.Namespace)
	checkRefused(t, dev.Update(t.Context(), forged), refused{403, b.Name})
	orphaned := r.rel.DeepCopy()
	orphaned.OwnerReferences = nil
	if err := dev.Update(t.Context(), orphaned); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r.rel.OwnerReferences, orphaned.OwnerReferences); diff != "" {
		t.Errorf("the owner that was left out (-want +got):\n%s", diff)
	}
	for _, o := range []client.Object{r.capacity, r.traffic, r.install} {
		without, of := o.DeepCopyObject().(client.Object), o.DeepCopyObject().(client.Object)
		without.SetOwnerReferences(nil)
		checkRefused(t, dev.Update(t.Context(), without), refused{422, why + "Release"})
		of.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: shipper.GroupVersion.String(), Kind: "Release", Name: r.rel.Name, UID: "forged",
		}})
		checkRefused(t, dev.Update(t.Context(), of), refused{422, why + "Release"})
	}

	for _, o := range []client.Object{r.capacity, r.traffic, r.install} { // nor does the reconciler's user name help
		without := o.DeepCopyObject().(client.Object)
		without.SetOwnerReferences(nil)
		checkRefused(t, as(t, reconcilerUser).Update(t.Context(), without), refused{422, why + "Release"})
	}
	for _, o := range []client.Object{orphaned, r.capacity, r.traffic, r.install} {
		checkRefused(t, dev.Delete(t.Context(), o.DeepCopyObject().(client.Object)), refused{403, b.Name})
	}
}

// A block's selector matches the labels before an update, those of the Application and of its Releases.
func TestNobodyLeavesAFreezeByTakingALabelOff(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	payments := func(app *shipper.Application) { app.Labels = map[string]string{"tier": "payments", "team": "a"} }
	r, dev, b := rollOut(t, ns, payments), as(t, "dev"), block(t, ns)
	b.Spec.Scope = &shipper.RolloutBlockScope{Applications: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpExists}},
	}}
	if err := admin.Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	env.Eventually(t, "the webhook to know the scope", func(ctx context.Context) error {
		other := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "other"}, Spec: r.app.Spec}
		return dev.Create(ctx, other, client.DryRunAll)
	})
	merge := func(o client.Object, patch string) error {
		return dev.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch)))
	}
	const off, edit = `{"metadata":{"labels":{"tier":null}}}`, `{"spec":{"template":{"chart":{"version":"0.0.2"}}}}`
	checkRefused(t, merge(r.app.DeepCopy(), off), refused{403, b.Name})
	if err := merge(r.app, `{"metadata":{"labels":{"team":"b"}}}`); err != nil {
		t.Error(err)
	}

	unblock(t, b)
	for _, o := range []client.Object{r.app, r.rel} {
		if err := merge(o, off); err != nil {
			t.Fatal(err)
		}
	}
	if r.app.Labels["tier"] != "" || r.rel.Labels["tier"] != "payments" {
		t.Errorf("the Application has labels %v, its Release %v", r.app.Labels, r.rel.Labels)
	}
	again := &shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Namespace: ns, GenerateName: "again-"}, Spec: b.Spec}
	create(t, admin, again)
	env.Eventually(t, "the webhook to know the block", func(ctx context.Context) error {
		labelled := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "other"}, Spec: r.app.Spec}
		payments(labelled)
		if err := dev.Create(ctx, labelled, client.DryRunAll); err == nil {
			return errors.New("the write was admitted")
		}
		return nil
	})
	checkRefused(t, merge(r.app.DeepCopy(), edit), refused{403, again.Name})
	checkRefused(t, dev.Delete(t.Context(), r.app), refused{403, again.Name})
}

func TestBlocksThatEndTogetherLeaveNoOverride(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	first, second := block(t, ns), block(t, ns)
	app := application(ns, startRepository(t, "0.0.1"), ask.Overriding(ns+"/"+first.Name+","+ns+"/"+second.Name))
	if err := admin.Create(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	unblock(t, first)
	unblock(t, second)
	ask.Overriding(ns + "/" + second.Name)(app)
	if err := as(t, reconcilerUser).Update(t.Context(), app); err != nil {
		t.Fatalf("one of two overrides was not taken out: %v", err)
	}
	ask.Overriding(ns + "/typo," + ns + "/" + second.Name)(app)
	checkRefused(t, as(t, "dev").Update(t.Context(), app.DeepCopy()), refused{422, "there is no RolloutBlock " + ns + "/typo"})
	delete(app.Annotations, shipper.RolloutBlockOverrideAnnotation)
	if err := as(t, "dev").Update(t.Context(), app); err != nil {
		t.Fatal(err)
	}
}

// A block applies to every request after its creation. The test logs the delay without judging it: machines differ.
func TestHowSoonABlockHolds(t *testing.T) {
	ns := namespace(t)
	b := &shipper.RolloutBlock{Spec: ask.Block("x/y").Spec}
	b.Namespace, b.Name = ns, "soon"
	create(t, admin, b)
	began := time.Now()
	env.Eventually(t, "the first refusal", func(ctx context.Context) error { return probe(ctx, b, true) })
	t.Logf("the first refusal came %s after the block was created", time.Since(began).Round(time.Millisecond))
}

// audited collects the audit annotations of a user's requests, by the part of the key after the webhook's name.
func audited(t *testing.T, namespace, name string) map[string]string {
	t.Helper()
	file, err := os.Open(management.AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out := map[string]string{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var event auditv1.Event
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			continue
		}
		who := event.User.Username
		if event.ImpersonatedUser != nil {
			who = event.ImpersonatedUser.Username
		}
		if who != name || event.Stage != auditv1.StageResponseComplete || event.ObjectRef == nil || event.ObjectRef.Namespace != namespace {
			continue
		}
		for key, value := range event.Annotations {
			if strings.Contains(key, "shipper.booking.com/") {
				out[key] = value
			}
		}
	}
	return out
}

func TestAnswersAreAudited(t *testing.T) {
	t.Parallel()
	ns, repo := namespace(t), startRepository(t, "0.0.1")
	app := application(ns, repo, ask.Version("~0"))
	create(t, as(t, "audited-creator"), app)
	b := block(t, ns)
	key := b.Namespace + "/" + b.Name
	replicas(8)(app)
	checkRefused(t, as(t, "audited-editor").Update(t.Context(), app), refused{403, key})
	lifter := as(t, "audited-lifter")
	checkRefused(t, lifter.Delete(t.Context(), b, client.DryRunAll), refused{})

	const mutate, validate = "mutate.application.shipper.booking.com/", "application.shipper.booking.com/"
	for who, want := range map[string]map[string]string{
		"audited-creator": {
			mutate + "decision": "allowed", mutate + "chart-pinned": "nginx 0.0.1",
			validate + "decision": "allowed", validate + "release-stamped": nameOf(t, application(ns, repo)),
		},
		"audited-editor": {
			mutate + "decision": "blocked", mutate + "chart-pinned": "nginx 0.0.1", mutate + "blocks-met": key,
		},
		"audited-lifter": {
			"rolloutblock.shipper.booking.com/decision": "allowed", "rolloutblock.shipper.booking.com/block-lifted": key,
		},
	} {
		env.Eventually(t, "the audit log to have what "+who+" did", func(context.Context) error {
			if diff := cmp.Diff(want, audited(t, ns, who)); diff != "" {
				return errors.New("(-want +got):\n" + diff)
			}
			return nil
		})
	}
}
