// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/pod"
)

// TestWhenNoWebhookIsLeft ends all replicas. The gate is shut, and nothing else is: Shipper can be mended, and what goes,
// goes. One command opens the gate; another shuts it when there are webhooks again.
func TestWhenNoWebhookIsLeft(t *testing.T) {
	user := as(t, "dev")
	full, other := namespace(t, "full-"), namespace(t, "other-")
	inhabit(t, full, finalizer)
	collected := inhabit(t, other, finalizer)
	dns := block(t, full, "dns-outage")
	env.Eventually(t, "the namespace to be kept by its Application", func(ctx context.Context) error {
		err := world.Management.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: full}}, client.DryRunAll)
		return refused(err, http.StatusForbidden, "would go Application super-server: rollouts blocked by: "+full+"/"+dns.Name)
	})
	collected.startGoing(t)
	loseReplicas(t)

	err := user.Create(t.Context(), application(other, "late"))
	if err := refused(err, http.StatusInternalServerError, "failed calling webhook"); err != nil {
		t.Error(err)
	}
	shipperCanBeMended(t)
	if err := world.Management.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: full}}); err != nil {
		t.Fatal(err)
	}
	cleanUp(t, full)
	cleanUp(t, other)
	gone(t, collected.app)
	gone(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: full}})

	shipperctl(t, "clusters", "setup", "management", "--webhook-ignore", "--webhook-url", pod.WebhookURL(world.service.Port))
	env.Eventually(t, "writes to pass unjudged", func(ctx context.Context) error { return user.Create(ctx, application(other, "unjudged")) })
	if err := startReplicas(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	clusters := filepath.Join(t.TempDir(), "clusters.yaml")
	if err := os.WriteFile(clusters, []byte("applicationClusters:\n- {name: here, context: mgmt, region: local}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	shipperctl(t, "clusters", "join", "-f", clusters)
	again := block(t, other, "dns-outage")
	env.Eventually(t, "the gate to judge", func(ctx context.Context) error {
		err := user.Create(ctx, application(other, "judged"))
		return refused(err, http.StatusForbidden, "rollouts blocked by: "+other+"/"+again.Name)
	})
	loseReplicas(t)
	err = user.Create(t.Context(), application(other, "shut-out"))
	if err := refused(err, http.StatusInternalServerError, "failed calling webhook"); err != nil {
		t.Error(err)
	}
}

// TestWhatGoesIsNotHeldUp is the same with the webhooks there.
func TestWhatGoesIsNotHeldUp(t *testing.T) {
	full, other := namespace(t, "full-"), namespace(t, "other-")
	inhabit(t, full) // a namespace with finalizers in it is looked at again after 8 s
	collected := inhabit(t, other, finalizer)
	collected.startGoing(t)
	block(t, other, "dns-outage") // a deletion that has begun continues under a block
	if err := world.Management.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: full}}); err != nil {
		t.Fatal(err)
	}
	cleanUp(t, other)
	gone(t, collected.app)
	gone(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: full}})
}

// loseReplicas kills all replicas. After the test there are three again.
func loseReplicas(t *testing.T) {
	t.Helper()
	for _, r := range world.replicas {
		r.Kill()
		r.api.Close()
	}
	world.replicas = nil
	lead()
	t.Cleanup(func() {
		if len(world.replicas) > 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), env.Patience)
		defer cancel()
		if err := startReplicas(ctx, 3); err != nil {
			t.Error(err)
		}
	})
}

// inhabitants are an Application and what belongs to it.
type inhabitants struct {
	app *shipper.Application
	all []client.Object // that belong to it
}

// finalizer is the one that the reconciler has put on targets of its own.
const finalizer = "test.example.com/not-cleaned-up"

// inhabit makes an Application in namespace, with a Release and its targets, one of which has finalizers.
func inhabit(t *testing.T, namespace string, finalizers ...string) inhabitants {
	t.Helper()
	reconciler := as(t, reconcilerUser)
	app := application(namespace, "super-server")
	rel := rollOut(t, reconciler, app)
	child := metav1.ObjectMeta{
		Namespace: namespace, Name: rel.Name, Labels: rel.Labels,
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: shipper.GroupVersion.String(), Kind: "Release", Name: rel.Name, UID: rel.UID, BlockOwnerDeletion: ptr.To(true),
		}},
	}
	install := &shipper.InstallationTarget{ObjectMeta: *child.DeepCopy(), Spec: shipper.InstallationTargetSpec{Clusters: []string{"eu"}}}
	install.Finalizers = finalizers
	capacity := &shipper.CapacityTarget{
		ObjectMeta: *child.DeepCopy(), Spec: shipper.CapacityTargetSpec{Clusters: []shipper.ClusterCapacityTarget{{Name: "eu"}}},
	}
	traffic := &shipper.TrafficTarget{
		ObjectMeta: *child.DeepCopy(), Spec: shipper.TrafficTargetSpec{Clusters: []shipper.ClusterTrafficTarget{{Name: "eu"}}},
	}
	all := []client.Object{rel, install, capacity, traffic}
	for _, o := range all[1:] {
		if err := reconciler.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return inhabitants{app, all}
}

// startGoing deletes the Application in the foreground, and returns when what belongs to it is going, too.
func (i inhabitants) startGoing(t *testing.T) {
	t.Helper()
	if err := world.Management.Delete(t.Context(), i.app, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	env.Eventually(t, "the garbage collector to begin", func(ctx context.Context) error {
		install := i.all[1].DeepCopyObject().(client.Object)
		if err := world.Management.Get(ctx, client.ObjectKeyFromObject(install), install); err != nil {
			return err
		}
		if install.GetDeletionTimestamp() == nil {
			return errors.New("it has not")
		}
		return nil
	})
}

// cleanUp does what the reconciler does for the target in namespace, once that is going.
func cleanUp(t *testing.T, namespace string) {
	t.Helper()
	reconciler := as(t, reconcilerUser)
	env.Eventually(t, "the target to be cleaned up", func(ctx context.Context) error {
		var targets shipper.InstallationTargetList
		if err := reconciler.List(ctx, &targets, client.InNamespace(namespace)); err != nil {
			return err
		}
		for i := range targets.Items {
			if targets.Items[i].DeletionTimestamp == nil {
				return errors.New("it is not going yet")
			}
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			if err := reconciler.Patch(ctx, &targets.Items[i], patch); err != nil {
				return err
			}
		}
		return nil
	})
}

// shipperCanBeMended writes in Shipper's namespace what an administrator may need to write there.
func shipperCanBeMended(t *testing.T) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: shipper.SystemNamespace, Name: "mended"}
	labels := map[string]string{"app": "mended"}
	author := shipper.RolloutBlockAuthor{Type: "user", Name: "x"}
	b := &shipper.RolloutBlock{ObjectMeta: meta, Spec: shipper.RolloutBlockSpec{Message: "x", Author: author}}
	for _, o := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: meta}, &corev1.Secret{ObjectMeta: meta}, application(shipper.SystemNamespace, "mended"), b,
		&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "webhook", Image: "shipper:1"}}},
			},
		}},
	} {
		o.SetResourceVersion("")
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"mended":"true"}}}`))
		err := world.Management.Create(t.Context(), o)
		if err == nil {
			err = world.Management.Patch(t.Context(), o, patch)
		}
		if err == nil {
			err = world.Management.Delete(t.Context(), o)
		}
		if err != nil {
			t.Errorf("%T: %v", o, err)
		}
	}
}

// shipperctl runs a command as an administrator does.
func shipperctl(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(world.Dir, "shipperctl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+world.Fleet.Kubeconfig)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("shipperctl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// gone waits until o is not there.
func gone(t *testing.T, o client.Object) {
	t.Helper()
	env.Eventually(t, fmt.Sprintf("%T %s to go", o, o.GetName()), func(ctx context.Context) error {
		err := world.Management.Get(ctx, client.ObjectKeyFromObject(o), o)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there with finalizers %v: %w", o.GetFinalizers(), err)
	})
}
